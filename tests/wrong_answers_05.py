"""Answers to lesson 5's exercises that a learner may well give, and what the check must say of each."""

_FORMULAS = """def my_formulas():
    def cat(tensors, dim=0):
        first = tensors[0]
        return {cat}

    def conv1d(input, weight, stride=1, padding=0):
        return {conv}

    return {{"cat": cat, "conv1d": conv1d}}"""
_CAT = "(*first[:dim], sum(s[dim] for s in tensors), *first[dim + 1 :])"
_CONV = "(input[0], weight[0], (input[2] + 2 * padding - weight[2]) // stride + 1)"

WRONG = {
    "matmul_formula": [
        ("def my_matmul(A, B):\n    return A[0], B[1]", "for shapes"),  # matrices only
        ("def my_matmul(A, B):\n    return (*batches(A[:-2], B[:-2]), A[-2], B[-1])", "raised IndexError"),
        ("def my_matmul(A, B):\n    return (*A[:-2], *A[-2:-1], *(B[-1:] if len(B) > 1 else ()))", "for shapes"),  # batches of the left only
        # decides: asks whether a size is 1
        ("def my_matmul(A, B):\n    rows = A[-2:-1] if len(A) > 1 else ()\n    columns = B[-1:] if len(B) > 1 else ()\n"
         "    if columns and columns[0] == 1:\n        columns = (1,)\n    return (*batches(A[:-2], B[:-2]), *rows, *columns)", "must not decide"),
        ("def my_matmul(A, B):\n    return torch.matmul(torch.zeros(A), torch.zeros(B)).shape[0]", "a tuple of sizes"),
    ],
    "cat_and_conv": [
        (_FORMULAS.format(cat="(sum(s[0] for s in tensors), *first[1:])", conv=_CONV), "cat of"),  # always the first dimension
        (_FORMULAS.format(cat="(*first[:dim], len(tensors) * first[dim], *first[dim + 1 :])", conv=_CONV), "cat of"),
        (_FORMULAS.format(cat=_CAT, conv="(input[0], weight[0], (input[2] + padding - weight[2]) // stride + 1)"), "conv1d of"),  # one side
        (_FORMULAS.format(cat=_CAT, conv="(input[0], weight[1], (input[2] + 2 * padding - weight[2]) // stride + 1)"), "conv1d of"),
        (_FORMULAS.format(cat=_CAT, conv="(input[0], weight[0], (input[2] + 2 * padding - weight[2] + 1) // stride)"), "conv1d of"),
        (_FORMULAS.format(cat="(*first[:dim], sum(int(s[dim]) for s in tensors), *first[dim + 1 :])", conv=_CONV), "must stay symbols"),
    ],
    "own_operator": [
        ("def my_pairs_shape(x, times):\n    return x[0], x[0]", "times = 2"),
        ("def my_pairs_shape(x, times):\n    return times * x[0], times * x[0]", "times = 2"),
        ("def my_pairs_shape(x, times):\n    return times * int(x[0]), x[0]", "decided"),
        ("def my_pairs_shape(x, times):\n    return times * x[0] * x[0]", "a tuple of sizes"),
    ],
    "pins": [
        ("def my_pins(expression, sizes):\n    import re\n"
         "    return sorted(f\"{n}.shape[{d}] == {sizes[n][int(d)]}\" for n, d in re.findall(r\"(\\w+)\\.shape\\[(\\d+)\\]\", expression))", "once"),
        ("def my_pins(expression, sizes):\n    return sorted(f\"{n}.shape[{d}] == {s}\" for n in sizes for d, s in enumerate(sizes[n]) if n in expression)", "for A.shape[0]"),
        ("def my_pins(expression, sizes):\n    return {f\"{expression} == {sizes['A'][0]}\"}", "a list"),
        ("def my_pins(expression, sizes):\n    return [f\"{n}.shape == {s}\" for n, s in sizes.items() if n + '.' in expression]", "for A.shape[0]"),
    ],
}  # fmt: skip
