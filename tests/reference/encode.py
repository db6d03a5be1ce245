"""Encoding of a column that is not numeric as columns of numbers, row by row."""

import calendar
import datetime as dt
import math

nan = math.nan


def encoded(name, values, max_categories=100):
    """Return name -> numbers of a column of labels, dates, times or durations; None is missing.

    The result is {} for a column of too many labels.
    """
    observed = [value for value in values if value is not None]
    if all(isinstance(value, dt.date) for value in observed):
        rows = [_of_date(value) for value in values]
        if all(_utc(value).time() == dt.time() for value in observed):
            rows = [row[:-3] for row in rows]
        ends = _DATE_ENDS
    elif all(isinstance(value, dt.time) for value in observed):
        rows, ends = [_of_time(value) for value in values], _TIME_ENDS
    elif all(isinstance(value, dt.timedelta) for value in observed):
        rows, ends = [[nan if v is None else v.total_seconds()] for v in values], ["seconds"]
    else:
        labels = sorted({str(value) for value in values})
        if len(labels) > min(max_categories, len(values) // 2):
            return {}
        return {f"{name}_{label}": [int(str(v) == label) for v in values] for label in labels}
    return {
        f"{name}_{end}": [row[k] for row in rows] for k, end in enumerate(ends) if k < len(rows[0])
    }


_DATE_ENDS = ["seconds", "year", "month", "weekday", "day_of_year", "year_sin", "year_cos"]
_DATE_ENDS += ["hour", "day_sin", "day_cos"]
_TIME_ENDS = ["seconds", "hour", "day_sin", "day_cos"]


def _utc(value):
    if not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)


def _of_date(value):
    if value is None:
        return [nan] * len(_DATE_ENDS)
    t = _utc(value)
    day = (t.hour * 3600 + t.minute * 60 + t.second + t.microsecond / 1e6) / 86400
    day_of_year = t.timetuple().tm_yday
    year = (day_of_year - 1 + day) / (366 if calendar.isleap(t.year) else 365)
    numbers = [t.timestamp(), t.year, t.month, t.weekday(), day_of_year, *_cycle(year)]
    return [*numbers, t.hour, *_cycle(day)]


def _of_time(value):
    if value is None:
        return [nan] * len(_TIME_ENDS)
    seconds = value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    return [seconds, value.hour, *_cycle(seconds / 86400)]


def _cycle(phase):
    return [math.sin(2 * math.pi * phase), math.cos(2 * math.pi * phase)]
