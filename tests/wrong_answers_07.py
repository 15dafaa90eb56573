"""Answers to lesson 7's exercises that a learner may well give, and what the check must say of each."""


def _pairs(which):
    return f"def my_pairs():\n    return {which}"


def _inputs(*marks):
    body = "".join(f"    {mark}\n" for mark in marks)
    return f"def my_inputs():\n    a, b = randn(4, 16), randn(4, 16)\n{body}    return a, b"


WRONG = {
    "accepted_pairs": [
        # all that broadcast: our trace's
        (_pairs("{(n, m) for n in range(6) for m in range(6) if n == m or 1 in (n, m)}"), "for sizes 0 and 0: expected a refusal"),
        # 0/1 specialisation forgotten
        (_pairs("{(n, n) for n in range(1, 6)}"), "for sizes 1 and 1: expected a refusal"),
        # static
        (_pairs("{(4, 4)}"), "for sizes 2 and 2: expected the pair"),
        # duck shaping forgotten
        (_pairs("{(n, m) for n in range(2, 6) for m in range(2, 6)}"), "for sizes 2 and 3: expected a refusal"),
        (_pairs("{(n, n) for n in range(2, 9)}"), "pairs of these"),
        (_pairs("{2, 3, 4, 5}"), "a set of pairs"),
    ],
    "stops_recompiling": [
        # still a loop over the rows
        ("def my_centred(x):\n    return x - sum(x[i] for i in range(x.shape[0])) / x.shape[0]", "entries"),
        # the size, but as a number
        ("def my_centred(x):\n    return x - x.sum(0) / len(list(range(x.shape[0])))", "entries"),
        # the mean of all elements
        ("def my_centred(x):\n    return x - x.mean()", "column by column"),
        # the number of rows written down
        ("def my_centred(x):\n    return x - x.sum(0) / 4", "for 1 rows"),
        ("def my_centred(x):\n    return x.mean(0)", "a tensor of shape [1, 3]"),
    ],
    "marked_inputs": [
        (_inputs(), "Is the batch of each tensor marked"),
        (_inputs("mark_dynamic(a, 0)"), "ConstraintViolationError"),
        (_inputs("mark_dynamic(a, (0, 1))", "mark_dynamic(b, (0, 1))"), "for 3 columns"),
        (_inputs("mark_dynamic(a, 1)", "mark_dynamic(b, 1)"), "for two batches of 2"),
        ("def my_inputs():\n    return randn(4, 16)", "two tensors of shape"),
    ],
}
