"""Answers to lesson 6's exercises that a learner may well give, and what the check must say of each."""

_RIGHT = 'f: [], g: ["x.shape[0] > 3", "x.shape[1] <= 5"], h: ["x.shape[1] == 3"], k: ["x.shape[0] >= 5"]'


def _guards(**wrong):
    """The right answer but for one program."""
    return f"def my_guards():\n    return {{{_RIGHT}}} | {{{', '.join(f'{k}: {v}' for k, v in wrong.items())}}}"


_INTERVAL = (
    "def my_shortest(bounds):\n"
    "    lo, hi, holes = 0, math.inf, set()\n"
    "    for op, n in bounds:\n"
    "        if op in ('>', '>=', '=='):\n            lo = max(lo, n + (op == '>'))\n"
    "        if op in ('<', '<=', '=='):\n            hi = min(hi, n - (op == '<'))\n"
    "        if op == '!=':\n            holes.add(n)\n"
)
_RESULT = (
    "    ends = [('>=', lo)] * (lo > 0) + [('<=', hi)] * (hi < math.inf)\n"
    "    return ends + [('!=', n) for n in sorted(holes) if lo < n < hi]"
)


def _padded(rows="torch.sym_max(x.shape[0], y.shape[0])", columns="x.shape[1]", total="(x.shape[0] + y.shape[0])", first=""):
    return (
        f"def my_padded(x, y):\n{first}"
        f"    out = torch.zeros({rows}, {columns})\n"
        "    out[: x.shape[0]] += x\n    out[: y.shape[0]] += y\n"
        f"    return out / {total}"
    )


WRONG = {
    "predicted_guards": [
        # the pin of per_dimension
        (_guards(g='["x.shape[0] == 6", "x.shape[1] <= 5"]'), "for g and an x of shape (4, 0): expected that the guards hold"),
        # a size passed on seems to be a look
        (_guards(f='["x.shape[0] == 6", "x.shape[1] == 3"]'), "for f and an x of shape (0, 0)"),
        # the question instead of its outcome
        (_guards(g='["x.shape[0] > 3", "x.shape[1] > 5"]'), "for g and an x of shape (4, 0)"),
        # only the last question of an `and`
        (_guards(g='["x.shape[0] > 3"]'), "for g and an x of shape (4, 6): expected a refusal"),
        # the loop is overlooked
        (_guards(h='["x.shape[1] <= 8"]'), "for h and an x of shape (0, 0): expected a refusal"),
        # implied
        (_guards(h='["x.shape[1] <= 8", "x.shape[1] == 3"]'), "expected a list of length 1, got one of 2"),
        # the bound on the result, put on the parameter
        (_guards(k='["x.shape[0] >= 10"]'), "for k and an x of shape (5, 0)"),
        (_guards(k='["y.shape[0] >= 10"]'), "Only x is known"),
        (_guards(k='"x.shape[0] >= 5"'), "a list of strings"),
        ("def my_guards():\n    return {f: []}", "nothing for g, h, k"),
        ('def my_guards():\n    return {"f": []}', "functions themselves"),
    ],
    "shortest_bounds": [
        ("def my_shortest(bounds):\n    return list(dict.fromkeys(bounds))", "one of them can go"),
        # an equality is two ends
        (_INTERVAL + _RESULT, "expected 1 bound, got [('>=', 5), ('<=', 5)]"),
        # holes at an end don't move it
        (_INTERVAL + "    if lo == hi:\n        return [('==', lo)]\n" + _RESULT, "size 4 to be refused"),
        # sizes may be negative, it thinks
        (_INTERVAL.replace("lo, hi, holes = 0", "lo, hi, holes = -math.inf") + "    while lo in holes:\n        lo += 1\n"
         "    while hi in holes:\n        hi -= 1\n    if lo == hi:\n        return [('==', lo)]\n"
         + _RESULT.replace("lo > 0", "lo > -math.inf"), "one of them can go"),
        # a strict bound taken for a weak one
        (_INTERVAL.replace("n + (op == '>')", "n") + "    if lo == hi:\n        return [('==', lo)]\n" + _RESULT,
         "size 3 to be refused"),
        # no end is an infinite end
        (_INTERVAL + "    return [('>=', lo), ('<=', hi)]", "infinity is not an int"),
        ("def my_shortest(bounds):\n    bounds.sort()\n    return bounds", "Build a new list"),
    ],
    "broadcast_pairs": [
        ("def my_pairs():\n    return {(4, 4), (5, 5)}", "some missing, with a size of a + b of 4"),
        # one order only
        ("def my_pairs():\n    return {(4, 4), (5, 5), (4, 1), (5, 1)}", "In how many ways"),
        # both above 3 seems enough
        ("def my_pairs():\n    return {(a, b) for a in (4, 5) for b in (4, 5)}", "for sizes (4, 5): expected that joined runs"),
        # one above 3
        ("def my_pairs():\n    return {(a, b) for a in range(6) for b in range(6) if max(a, b) > 3}", "expected that joined runs"),
        # everything that broadcasts
        ("def my_pairs():\n    return {(a, b) for a in range(6) for b in range(6) if a == b or 1 in (a, b)}", "Which size has a + b"),
        ("def my_pairs():\n    return {n for n in (4, 5)}", "a set of pairs"),
        ("def my_pairs():\n    return {(9, 9)}", "from 0 to 5"),
    ],
    "three_entries": [
        # an entry for each path that the source shows, it thinks
        ("def my_stream():\n    return [1, 2, 3, 9, 10, 11]", "expected 3 entries, got 4"),
        ("def my_stream():\n    return [9, 10, 11, 12, 13, 14]", "expected 3 entries, got 1"),
        # 8 isn't above 8
        ("def my_stream():\n    return [1, 2, 8, 9, 10, 11]", "Too few calls share an entry"),
        ("def my_stream():\n    return [1, 1, 2, 2, 9, 9]", "six different sizes, got only 3"),
        ("def my_stream():\n    return [1, 2, 9]", "six sizes, got 3"),
        ("def my_stream():\n    return 3", "a list of sizes"),
    ],
    "stops_specialising": [
        ("def my_padded(x, y):\n    return padded(x, y)", "x.shape[0] == 4"),
        (_padded(rows="max(x.shape[0], y.shape[0])"), "y.shape[0] <= x.shape[0]"),
        (_padded(rows="int(torch.sym_max(x.shape[0], y.shape[0]))"), "x.shape[0]"),
        (_padded(total="float(x.shape[0] + y.shape[0])"), "x.shape[0] + y.shape[0] == 6"),
        (_padded(rows="len(x) if len(x) > len(y) else len(y)"), "x.shape[0] == 4"),
        # the number of columns seen
        (_padded(columns="3"), "your answer raised RuntimeError"),
        (_padded(total="x.shape[0]"), "what padded returns"),
        ("def my_padded(x, y):\n    return torch.cat([x, y])", "what padded returns"),
        ("def my_padded(x, y):\n    return None", "a tensor, got a NoneType"),
    ],
}  # fmt: skip
