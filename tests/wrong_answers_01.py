"""Answers to lesson 1's exercises that a learner may well give, and what the check must say of each."""

_INTERP = """
    def my_interp(node, env):
        if node.op == v_dynamic_param:
            return env[node.params["name"]]
        return {call}
    return v_sub, v_sum, my_interp"""
_HEAD = 'def my_ops():\n    v_sub, v_sum = Op("v_sub"), Op("v_sum")\n'

WRONG = {
    "more_ops": [
        # recursion into the old interpreter
        (_HEAD + "    rules = {**INTERP_RULES, v_sub: operator.sub, v_sum: torch.sum}"
         + _INTERP.format(call="rules[node.op](*(interp_node(i, env) for i in node.inputs), **node.params)"), "raised"),
        # the sum forgets its dim
        (_HEAD + "    rules = {**INTERP_RULES, v_sub: operator.sub, v_sum: torch.sum}"
         + _INTERP.format(call="rules[node.op](*(my_interp(i, env) for i in node.inputs))"), "for a.sum(0)"),
        # the wrong way round
        (_HEAD + "    rules = {**INTERP_RULES, v_sub: lambda x, y: y - x, v_sum: torch.sum}"
         + _INTERP.format(call="rules[node.op](*(my_interp(i, env) for i in node.inputs), **node.params)"), "for a - b"),
        ('def my_ops():\n    return Op("sub"), Op("sum"), interp_node', "v_sub and v_sum"),
        ('def my_ops():\n    return Op("v_sub"), Op("v_sum")', "two ops and a function"),
    ],
    "shows_static": [
        ("def my_show(node):\n    return show(node)", "v_static_param(name=w, size=[2, 3])"),
        # inputs by the old function
        ("def my_show(node):\n    if node.op == v_static_param:\n"
         "        return f\"{node.op}(name={node.params['name']}, size={list(node.params['size'])})\"\n    return show(node)", "for w * a"),
        # the size as torch prints it
        ("def my_show(node):\n    parts = [my_show(i) for i in node.inputs]\n"
         "    if node.params:\n        parts.append(f\"name={node.params['name']}\")\n"
         "    if node.op == v_static_param:\n        parts.append(f\"size={node.params['size']}\")\n"
         "    return f\"{node.op}({', '.join(parts)})\"", "list(size) prints with brackets"),
        ("def my_show(node):\n    show(node)", "got None"),
    ],
    "topological_order": [
        ("def my_order(node):\n    return [n for i in node.inputs for n in my_order(i)] + [node]", "each node once"),
        ("def my_order(node, done=None):\n    done = [] if done is None else done\n"
         "    for i in node.inputs:\n        if i not in done:\n            my_order(i, done)\n"
         "    done.append(node)\n    return done", "RecursionError"),
        ("def my_order(node):\n    order, todo = [], [node]\n    while todo:\n        node = todo.pop()\n"
         "        if node not in order[-50:]:\n            order.append(node)\n            todo.extend(node.inputs)\n    return order[::-1]",
         "for"),
        ("def my_order(node):\n    order, todo = [], [node]\n    while todo:\n        node = todo.pop(0)\n"
         "        if node not in order:\n            order.append(node)\n            todo.extend(node.inputs)\n    return order", "last"),
        ("def my_order(node):\n    seen, todo = {node}, [node]\n    while todo:\n        node = todo.pop()\n"
         "        todo.extend(i for i in node.inputs if i not in seen)\n        seen.update(node.inputs)\n    return seen", "a list of nodes"),
    ],
    "listing": [
        ('def my_listing(nodes):\n    return "\\n".join(map(show, nodes))', "v0 = v_add(x, x)"),
        # parameters take numbers too
        ('def my_listing(nodes):\n    names = {n: n.params.get("name", f"v{k}") for k, n in enumerate(nodes)}\n'
         '    return "\\n".join(f"{names[n]} = {n.op}({\', \'.join(names[i] for i in n.inputs)})" for n in nodes if n.inputs)', "take no number"),
        ('def my_listing(nodes):\n    names, text = {}, ""\n    for n in nodes:\n        names[n] = n.params.get("name", f"v{text.count(chr(10))}")\n'
         '        if n.inputs:\n            text += f"{names[n]} = {n.op}({\', \'.join(names[i] for i in n.inputs)})\\n"\n    return text', "no newline at the end"),
        ('def my_listing(nodes):\n    return [f"v{k} = {n.op}" for k, n in enumerate(nodes)]', "v0 = v_add(x, x)"),
    ],
}  # fmt: skip
