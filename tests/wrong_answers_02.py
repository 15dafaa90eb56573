"""Answers to lesson 2's exercises that a learner may well give, and what the check must say of each."""

P = '"v_add(v_mul(a, b), a)"'
Q = '"v_add(v_add(a, b), v_mul(v_add(a, b), a))"'
S = '"v_mul(v_mul(a, b), a)"'


def traces(p=P, q=Q, s=S):
    return f"def my_traces():\n    return {{p: {p}, q: {q}, s: {s}}}"


PIECES = (
    "def my_record(func, args, kwargs):\n"
    "    result = record(func, args, kwargs)\n"
    "    if not isinstance(result, (list, tuple)) or isinstance(result[0], (int, float)):\n"
    "        return result\n"
)

WRONG = {
    "printed_traces": [
        # the first time round only
        (traces(p='"v_add(v_mul(a, a), v_mul(a, a))"'), "expected the parameter b as the second input of the first"),
        # the flag of the first, the product of the second
        (traces(p='"v_add(v_mul(a, b), v_mul(a, b))"'), "expected the parameter a as the second input of the result"),
        # d follows c when c changes
        (traces(q='"v_add(v_mul(v_add(a, b), a), v_mul(v_add(a, b), a))"'), "for q: expected a v_add as the first"),
        # a name of the program
        (traces(q='"v_add(d, v_mul(v_add(a, b), a))"'), "got the parameter d"),
        # takes b of the inner call for the b of the outer
        (traces(s='"v_mul(v_mul(a, b), b)"'), "for s: expected the parameter a as the second input of the result"),
        (traces(s='"v_mul(a, b)"'), "for s: expected a v_mul as the first input of the result"),
        (traces(s='"s(v_mul(a, b), a)"'), "expected a v_mul as the result, got a s"),
        (traces(s='"v_mul(v_mul(a, b), a"'), "Do the parentheses match?"),
        (traces(s='"v_mul(v_mul(a, b), a, 2)"'), "expected 2 inputs of the result, got 3"),
        ('def my_traces():\n    return {"p": "v_mul(a, b)"}', "functions themselves"),
        (f"def my_traces():\n    return {{p: {P}}}", "nothing for q, s"),
        (traces(p="3"), "for p: expected a text"),
    ],
    "subtraction": [
        # the reflected one like the plain one
        (
            "class MySubtraction:\n"
            "    def __sub__(self, other):\n        return self + (-1) * lift(other)\n"
            "    def __rsub__(self, other):\n        return self - other",
            "for 1 - a with a = [1.0, 2.0, 4.0]",
        ),
        # tensors only
        (
            "class MySubtraction:\n"
            "    def __sub__(self, other):\n        return self.tensor - lift(other).tensor\n"
            "    def __rsub__(self, other):\n        return lift(other) - self",
            "expected a Variable, got a Tensor",
        ),
        # a number has no .tensor
        (
            "class MySubtraction:\n"
            "    def __sub__(self, other):\n        return self + (-1) * other\n"
            "    def __rsub__(self, other):\n        return self * -1 + other",
            "`other` may be a Variable or a number",
        ),
        # an op without a rule
        (
            "class MySubtraction:\n"
            "    def __sub__(self, other):\n"
            "        other = lift(other)\n"
            "        return Variable(self.tensor - other.tensor, Node(Op('v_minus'), (self.node, other.node), {}))\n"
            "    def __rsub__(self, other):\n        return lift(other) - self",
            "needs a rule in INTERP_RULES",
        ),
        # the value seen while tracing becomes a constant
        (
            "class MySubtraction:\n"
            "    def __sub__(self, other):\n        return lift(self.tensor - lift(other).tensor)\n"
            "    def __rsub__(self, other):\n        return lift(other) - self",
            "The tensor is right, its node isn't",
        ),
        # the tensor the right way round, the node not
        (
            "v_sub = Op('v_sub')\nINTERP_RULES[v_sub] = operator.sub\n"
            "class MySubtraction:\n"
            "    def __sub__(self, other):\n"
            "        other = lift(other)\n"
            "        return Variable(self.tensor - other.tensor, Node(v_sub, (other.node, self.node), {}))\n"
            "    def __rsub__(self, other):\n        return lift(other) - self",
            "for a - b, replayed",
        ),
        (
            "class MySubtraction:\n"
            "    def __sub__(self, other):\n        return self + (-1) * lift(other)\n"
            "    def __rsub__(self, other):\n        raise NotImplementedError",
            "__rsub__ is still to write",
        ),
        (
            "class MySubtraction:\n    def __sub__(self, other):\n        return self + (-1) * lift(other)",
            "expected a method __rsub__, got none",
        ),
    ],
    "records_pieces": [
        (
            "def my_record(func, args, kwargs):\n    return record(func, args, kwargs)",
            "expected a TensorVariable, got a Tensor",
        ),
        # every piece has the node of the whole
        (
            "def my_record(func, args, kwargs):\n"
            "    result = record(func, args, kwargs)\n"
            "    if not isinstance(result, (list, tuple)):\n        return result\n"
            "    whole = Call(func, args, kwargs)\n"
            "    return tuple(TensorVariable.of(p, whole) if isinstance(p, torch.Tensor) else p for p in result)",
            "each piece needs a node that takes it out",
        ),
        # wraps numbers
        (
            "def my_record(func, args, kwargs):\n"
            "    result = record(func, args, kwargs)\n"
            "    if not isinstance(result, (list, tuple)):\n        return result\n"
            "    whole = Call(func, args, kwargs)\n"
            "    return tuple(TensorVariable.of(p, Call(operator.getitem, (whole, i), {}))\n"
            "                 for i, p in enumerate(result))",
            "for r = b * a.size()[0]",
        ),
        # always the first piece
        (
            f"{PIECES}    whole = Call(func, args, kwargs)\n"
            "    return tuple(TensorVariable.of(p, Call(operator.getitem, (whole, 0), {})) for p in result)",
            "Does each piece's node take that piece",
        ),
        # pieces as constants: the getitem is applied to the real tuple
        (
            f"{PIECES}    return tuple(TensorVariable.of(p, Call(operator.getitem, (result, i), {{}}))\n"
            "                 for i, p in enumerate(result))",
            "is a piece a constant of the trace?",
        ),
        # forgets results that are one tensor
        (
            "def my_record(func, args, kwargs):\n"
            "    whole = Call(func, args, kwargs)\n"
            "    args, kwargs = swap((args, kwargs), TensorVariable, lambda v: v.tensor)\n"
            "    return tuple(TensorVariable.of(p, Call(operator.getitem, (whole, i), {}))\n"
            "                 for i, p in enumerate(func(*args, **kwargs)))",
            "expected a TensorVariable, got a tuple",
        ),
        # loses the keyword arguments
        (
            f"{PIECES}    whole = Call(func, args, {{}})\n"
            "    return tuple(TensorVariable.of(p, Call(operator.getitem, (whole, i), {}))\n"
            "                 for i, p in enumerate(result))",
            "a.topk(k=2); r = top - b[where] replayed",
        ),
    ],
    "right_and_wrong": [
        ("def my_sizes():\n    return 4, 6", "one other than 4"),
        # believes that the same branch gives the same answer
        ("def my_sizes():\n    return 6, 8", "for size 6: expected a replay that is right, got one that is wrong"),
        ("def my_sizes():\n    return 3, 5", "an even one larger than 4"),
        ("def my_sizes():\n    return 5, 6", "for size 5: expected a replay that is right"),
        ("def my_sizes():\n    return 3, 2", "an even one larger than 4"),
        ("def my_sizes():\n    return 3", "Return (right, wrong)"),
    ],
}
