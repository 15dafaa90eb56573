"""Answers to lesson 3's exercises that a learner may well give, and what the check must say of each."""

WRONG = {
    "static_parameters": [
        # reads the size of the result, not of the value looked at
        ('def my_static():\n    return {f: {"a", "b"}, g: {"a", "b"}, h: {"a", "b", "c"}, k: {"b"}}', "f: b stays dynamic"),
        ('def my_static():\n    return {f: {"a"}, g: {"a", "b", "c"}, h: {"a", "b", "c"}, k: {"b"}}', "g: c stays dynamic"),
        # an unused number seems harmless
        ('def my_static():\n    return {f: {"a"}, g: {"a", "b"}, h: set(), k: {"b"}}', "h: a turns static"),
        # b isn't part of the result
        ('def my_static():\n    return {f: {"a"}, g: {"a", "b"}, h: {"a", "b", "c"}, k: set()}', "k: b turns static"),
        ('def my_static():\n    return {f: {"a"}, g: {"a", "b"}}', "nothing for h, k"),
        ('def my_static():\n    return {"f": {"a"}}', "functions themselves"),
        ('def my_static():\n    return {f: "a", g: "ab", h: "abc", k: "b"}', "a set of names"),
    ],
    "linear_sources": [
        ("def my_sources(node):\n    return input_sources(node)", "remember which you have seen"),
        (
            "def my_sources(node, seen=None):\n"
            "    seen = set() if seen is None else seen\n"
            "    if node in seen:\n        return set()\n"
            "    seen.add(node)\n"
            "    if node.op == v_dynamic_param:\n        return {node}\n"
            "    return set().union(*(my_sources(i, seen) for i in node.inputs))",
            "RecursionError",
        ),
        # a loop, and still one step per path
        (
            "def my_sources(node):\n"
            "    found, todo = set(), [node]\n"
            "    while todo:\n"
            "        node = todo.pop()\n"
            "        if node.op == v_dynamic_param:\n            found.add(node)\n"
            "        todo.extend(node.inputs)\n"
            "    return found",
            "60 times x = x + x",
        ),
        # each once in the list, but the parameters are found by having no inputs
        (
            "def my_sources(node):\n"
            "    found, seen, todo = set(), {node}, [node]\n"
            "    while todo:\n"
            "        node = todo.pop()\n"
            "        if not node.inputs:\n            found.add(node)\n"
            "        for i in node.inputs:\n"
            "            if i not in seen:\n                seen.add(i)\n                todo.append(i)\n"
            "    return found",
            "a v_static_param",
        ),
        (
            "def my_sources(node):\n"
            "    found, seen, todo = [], set(), [node]\n"
            "    while todo:\n"
            "        node = todo.pop()\n"
            "        if node.op == v_dynamic_param:\n            found.append(node)\n"
            "        todo += [i for i in node.inputs if i not in seen]\n"
            "        seen.update(node.inputs)\n"
            "    return [n.params['name'] for n in found]",
            "not their names",
        ),
        # forgets that the node may be a parameter itself
        (
            "def my_sources(node):\n"
            "    found, seen, todo = set(), {node}, [node]\n"
            "    while todo:\n"
            "        for i in todo.pop().inputs:\n"
            "            if i.op == v_dynamic_param:\n                found.add(i)\n"
            "            if i not in seen:\n                seen.add(i)\n                todo.append(i)\n"
            "    return found",
            "a parameter alone",
        ),
    ],
    "minimal_guards": [
        ("def my_minimal(guards):\n    return list(dict.fromkeys(guards))", "to go"),
        ("def my_minimal(guards):\n    return guards", "There is a repetition"),
        # looks at the subject, not at the parameter
        (
            "def my_minimal(guards):\n"
            "    whole = any(s == 'shape' for _, s, _ in guards)\n"
            "    return [g for g in dict.fromkeys(guards) if g[1] == 'shape' or not whole]",
            "('b', 'shape[0]', 4) to stay",
        ),
        # believes that a size fixes the rank
        (
            "def my_minimal(guards):\n"
            "    known = {n for n, s, _ in guards if s != 'dim()'}\n"
            "    whole = {n for n, s, _ in guards if s == 'shape'}\n"
            "    return [g for g in dict.fromkeys(guards)\n"
            "            if g[1] == 'shape' or g[0] not in (known if g[1] == 'dim()' else whole)]",
            "('a', 'dim()', 2) to stay",
        ),
        # only what comes after the whole shape
        (
            "def my_minimal(guards):\n"
            "    kept, whole = [], set()\n"
            "    for g in guards:\n"
            "        if g not in kept and g[0] not in whole:\n            kept.append(g)\n"
            "        if g[1] == 'shape':\n            whole.add(g[0])\n"
            "    return kept",
            "('a', 'dim()', 2) to go",
        ),
        (
            "def my_minimal(guards):\n"
            "    whole = {n for n, s, _ in guards if s == 'shape'}\n"
            "    return sorted({g for g in guards if g[1] == 'shape' or g[0] not in whole}, key=str)",
            "their order isn't",
        ),
        (
            "def my_minimal(guards):\n"
            "    whole = {n for n, s, _ in guards if s == 'shape'}\n"
            "    return {g for g in guards if g[1] == 'shape' or g[0] not in whole}",
            "a list",
        ),
    ],
    "refused_for_nothing": [
        ("def my_refusal():\n    return 4, 4", "That refusal was necessary"),
        ("def my_refusal():\n    return 5, 1", "the trace accepts"),
        ("def my_refusal():\n    return 6, 5", "must broadcast"),
        ("def my_refusal():\n    return [6], [6]", "two sizes"),
    ],
}
