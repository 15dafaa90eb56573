"""Answers to lesson 8's exercises that a learner may well give, and what the check must say of each."""


def _padded(by, where="(0, 0, 0, 0, 0, {})"):
    return f"def my_bucket(steps):\n    n = steps.shape[0]\n    return F.pad(steps, {where.format(by)})"


_DOUBLE = "(1 << (n - 1).bit_length()) - n"

WRONG = {
    "buckets": [
        (_padded("-n % 4"), "for a sequence of length 1: expected a length from 1 to 2, got 4"),
        (_padded("n % 2"), "for lengths 1 to 64: expected at most 7 different lengths"),
        (_padded(_DOUBLE, "(0, 0, 0, 0, {}, 0)"), "expected the steps themselves, then the padding"),
        (_padded(_DOUBLE, "(0, {})"), "expected a shape (length, 2, 3)"),
        (_padded("64 - n"), "for a sequence of length 1: expected a length from 1 to 2, got 64"),
    ],
    "lines_at_fault": [
        ('def my_lines():\n    return {"rows": "w = z.reshape(rows * columns)", "columns": "if columns > 4:"}', "for rows that change"),
        ('def my_lines():\n    return {"rows": "parts = [p.sum() for p in z.split(2)]", "columns": "w = w * columns"}',
         "for columns that change, to (6, 9) and (9,)"),
        ('def my_lines():\n    return {"rows": 5, "columns": 6}', "expected the line that the failing guard names, got 5"),
        ("def my_lines():\n    return ['if columns > 4:']", "expected a dict with 'rows' and 'columns'"),
    ],
    "two_compilations": [
        ("def my_weighted(x):\n    return weighted(x)", "expected at most 2 compilations"),
        ("def my_weighted(x):\n    n = x.shape[0]\n"
         "    w = torch.tensor([1 / n] * (n // 2) + [2 / n] * (n - n // 2))\n    return (x * w[:, None]).sum(0)",
         "expected at most 2 compilations"),
        ("def my_weighted(x):\n    n = x.shape[0]\n    return (x * torch.where(torch.arange(n) <= n // 2, 1.0, 2.0)[:, None] / n).sum(0)",
         "for a batch of 1"),
        ("def my_weighted(x):\n    return x.mean(0)", "The first n // 2 rows weigh 1 / n"),
    ],
    "all_dynamic": [
        ("def my_check(t):\n    static = [f'{n}.shape[{d}]' for n, s in t.status.items() for d, k in enumerate(s) if k == 'static']\n"
         "    return static or 'all dynamic'", "for a trace of a loop"),
        ("def my_check(t):\n    return [(g.code.split(' ==')[0], g.cause.text) for g in t.guards if g.kind == 'size'] or 'all dynamic'",
         "for a trace that pins a whole shape"),
        ("def my_check(t):\n    return [(f'{n}.shape[{d}]', g.cause.text) for g in t.guards for n, d in g.dims or ()] or 'all dynamic'",
         "for a trace with a bound alone: expected all dynamic"),
        ("def my_check(t):\n    return []", "expected all dynamic, got []"),
    ],
}  # fmt: skip
