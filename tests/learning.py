"""Learn columns in the form that a test has them."""


def learn(model, columns, y, covariates=None):
    """Return a model after it has learnt columns, (n, p) or a dict of them."""
    model.learn_target(y, covariates=covariates)
    if isinstance(columns, dict):
        for name, x in columns.items():
            model.learn_column(name, x)
    else:
        model.learn_columns(columns)
    return model
