"""Answers to lesson 4's exercises that a learner may well give, and what the check must say of each."""

WRONG = {
    "wrong_size": [
        ("def my_wrong_size():\n    return 5", "It fails"),  # the other path, and the trace can't run
        ("def my_wrong_size():\n    return 8", "the same answer twice"),
        ("def my_wrong_size():\n    return 6", "the same answer twice"),
        ("def my_wrong_size():\n    return 1.5", "a size, such as 6"),
    ],
    "refused": [
        ("def my_refused():\n    return 4, 3", "the trace accepts them"),
        ("def my_refused():\n    return 2, 3", "the other path"),
        ("def my_refused():\n    return 7", "two sizes"),
        ("def my_refused():\n    return 0, 5", "the other path"),
    ],
    "measures": [
        # what is accepted is compared with what is valid
        ("def my_measures(accepted, valid, right):\n    return accepted <= valid, len(accepted & valid) / len(valid) if valid else 1.0", "right by luck"),
        # luck counts
        ("def my_measures(accepted, valid, right):\n    return accepted <= right, min(1, len(accepted) / len(valid)) if valid else 1.0", "precision"),
        # the share of what is accepted, not of what is valid
        ("def my_measures(accepted, valid, right):\n    return accepted <= right, len(accepted & valid) / max(1, len(accepted))", "precision"),
        ("def my_measures(accepted, valid, right):\n    return accepted <= right, len(accepted & valid) / len(valid)", "ZeroDivisionError"),
        ("def my_measures(accepted, valid, right):\n    return accepted <= right", "a pair"),
    ],
    "origins": [
        ('def my_shapes():\n    return {"linear": lambda x, w: (x[0], w[1]), "transpose": lambda x: (x[1], x[0]), "outer": lambda x, y: (x[0], y[0])}', "linear of"),
        ('def my_shapes():\n    return {"linear": lambda x, w: (x[0], w[0]), "transpose": lambda x: x, "outer": lambda x, y: (x[0], y[0])}', "transpose of"),
        ('def my_shapes():\n    return {"linear": lambda x, w: (x[0], w[0]), "transpose": lambda x: (x[1], x[0]), "outer": lambda x, y: (x, y)}', "outer of"),
        ('def my_shapes():\n    return {"linear": lambda x, w: (x[0], w[0])}', "none for outer, transpose"),
    ],
}  # fmt: skip
