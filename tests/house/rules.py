"""The house rules as functions: a tree and the rule's table in, the faults out, each a sentence that says what to do."""

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from .source import PACKAGE, Bound, Function, Module, Tree, bindings, functions, listed, name_of

Rows = Mapping[str, Sequence[str]]
"""A key and the names that it allows."""

Reasons = Mapping[str, str]
"""An exception and why it stands."""

LONG_FILE, FAULTY_FILE = 400, 500
LONG_FUNCTION = 60
MANY_PARAMETERS = 7

_LOOSE = {
    "as_completed", "create_task", "ensure_future", "gather", "run_coroutine_threadsafe",
    "shield", "TaskGroup", "timeout", "timeout_at", "wait", "wait_for",
}  # fmt: skip
_SCOPES = {
    "CancelScope", "create_task_group", "fail_after", "fail_at", "move_on_after", "move_on_at",
    "TaskGroup", "timeout", "timeout_at",
}  # fmt: skip
_CANCELLATIONS = {"BaseException", "CancelledError", "get_cancelled_exc_class"}


def imports_that_climb(tree: Tree, may_import: Rows) -> list[str]:
    """Imports between rooms that the table does not allow."""
    faults: list[str] = []
    for module in tree:
        allowed = may_import.get(module.room)
        if allowed is None:
            faults.append(f"{module.path}: room {module.room!r} has no row; give it a place in MAY_IMPORT")
            continue
        for found in tree.imports(module):
            if not _inside(found.target, PACKAGE) or _room(found.target) == module.room:
                continue
            if not any(_inside(found.target, f"{PACKAGE}.{room}") for room in allowed):
                faults.append(
                    f"{module.at(found.line)}: {module.room!r} imports {found.target!r} but may import only "
                    f"{', '.join(allowed) or 'nothing'}; hand the thing in, or move the name to a lower floor"
                )
    return faults


def neighbours(tree: Tree, room: str, shared: Reasons) -> list[str]:
    """Imports from one folder of a room to a sibling folder. `shared` names the folders that any sibling may use."""
    faults: list[str] = []
    for module in tree:
        own = _folder(tree, module.name, room)
        if own is None:
            continue
        for found in tree.imports(module):
            other = _folder(tree, found.target, room)
            if other not in {None, own, *shared}:
                faults.append(
                    f"{module.at(found.line)}: {own!r} imports its neighbour {other!r}; "
                    f"move what both need to a file right under {room!r}"
                )
    return faults


def imports_of_private_files(tree: Tree) -> list[str]:
    """Imports of `_file.py` from outside the folder that it serves."""
    faults: list[str] = []
    for module in tree:
        for found in tree.imports(module):
            parts = found.target.split(".")
            private = next((i for i, part in enumerate(parts) if part.startswith("_") and part != "__future__"), None)
            if private and parts[0] == PACKAGE and not _inside(module.name, ".".join(parts[:private])):
                faults.append(
                    f"{module.at(found.line)}: {found.target!r} serves its own folder only; "
                    "import a public file of that room, or take the underscore away"
                )
    return faults


def imports_from_a_face(tree: Tree) -> list[str]:
    """Imports of a name from a module that only passes it on. The package's own `__init__` is the one that may.

    A foreign name that a module lists in its `__all__` is adopted: the module is its file from then on.
    """
    faults: list[str] = []
    bound = {module.name: bindings(module) for module in tree}
    for module in tree:
        if module.name == PACKAGE:
            continue
        for found in tree.imports(module):
            if found.target == PACKAGE:
                faults.append(
                    f"{module.at(found.line)}: imports {PACKAGE!r} itself; import from the file that defines the name"
                )
                continue
            if found.target not in bound:
                continue
            if found.name is None:
                if tree.modules[found.target].is_package:
                    faults.append(
                        f"{module.at(found.line)}: takes the room {found.target!r} as a whole; "
                        "import from the file that defines the name"
                    )
                continue
            if (origin := _passed_on(tree.modules[found.target], bound[found.target], found.name)) is not None:
                faults.append(
                    f"{module.at(found.line)}: {found.target!r} only passes {found.name!r} on; import it from {origin}"
                )
    return faults


def rings(tree: Tree) -> list[str]:
    """A ring of imports that run when modules are loaded."""
    graph = {
        module.name: {
            found.target
            for found in tree.imports(module)
            if not found.deferred and found.target in tree.modules and found.target != module.name
        }
        for module in tree
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        ring: list[str] = error.args[1]
        return [f"import ring: {' -> '.join(reversed(ring))}; move what both need to a third file below them"]
    return []


def foreign_imports(tree: Tree, bound: Rows, anywhere: Sequence[str]) -> list[str]:
    """Third-party imports outside the file, or the folder ending in `/`, that the package is bound to."""
    faults: list[str] = []
    for module in tree:
        for found in tree.imports(module):
            package = found.target.split(".")[0]
            if package in {PACKAGE, *anywhere} or package in sys.stdlib_module_names:
                continue
            places = bound.get(package)
            if places is None:
                faults.append(f"{module.at(found.line)}: {package!r} has no row; bind it to one file in BOUND")
            elif not any(
                module.path == place or (place[-1] == "/" and module.path.startswith(place)) for place in places
            ):
                faults.append(
                    f"{module.at(found.line)}: {package!r} is bound to {', '.join(places)}; call that file instead"
                )
    return faults


def long_files(tree: Tree, allowed: Reasons) -> list[str]:
    """Files over 500 lines, and files over 400 that nobody gave a reason for."""
    faults: list[str] = []
    for module in tree:
        if module.lines > FAULTY_FILE:
            faults.append(f"{module.path}: {module.lines} lines, {FAULTY_FILE} is the end; split it by subject")
        elif module.lines > LONG_FILE and module.path not in allowed:
            faults.append(
                f"{module.path}: {module.lines} lines; find its second subject, or give the reason in LONG_FILES"
            )
        elif module.lines <= LONG_FILE and module.path in allowed:
            faults.append(f"{module.path}: {module.lines} lines; take its row out of LONG_FILES")
    return faults


def long_functions(tree: Tree) -> list[str]:
    """Functions of more than 60 lines. The docstring is not counted: saying more must not cost anything."""
    return [
        f"{module.at(node.lineno)}: {name} has {lines} lines, {LONG_FUNCTION} is the end; name a part of it"
        for module in tree
        for name, node in functions(module.tree)
        if (lines := _lines(node)) > LONG_FUNCTION
    ]


def wide_functions(tree: Tree, allowed: Reasons) -> list[str]:
    """Functions of more than seven parameters; an `__init__` may have any number by keyword."""
    faults: list[str] = []
    for module in tree:
        wide: set[str] = set()
        for name, node in functions(module.tree):
            if (count := _parameters(node)) <= MANY_PARAMETERS:
                continue
            wide.add(f"{module.path}:{name}")
            if f"{module.path}:{name}" not in allowed:
                faults.append(
                    f"{module.at(node.lineno)}: {name} takes {count} parameters, {MANY_PARAMETERS} is the most; "
                    "give the group that wants a name a frozen record, or the reason in WIDE_FUNCTIONS"
                )
        for row in allowed:
            if row.startswith(f"{module.path}:") and row not in wide:
                faults.append(f"{row}: not so wide any more; take its row out of WIDE_FUNCTIONS")
    return faults


def loose_tasks(tree: Tree, allowed: Reasons) -> list[str]:
    """asyncio's own ways to start, bound or shield a task."""
    faults: list[str] = []
    for module in tree:
        used = list(_asyncio_names(tree, module))
        if module.path in allowed:
            if not used:
                faults.append(f"{module.path}: starts no task any more; take its row out of LOOSE_TASKS")
            continue
        faults.extend(
            f"{module.at(line)}: {name!r} makes a task or a limit without an owner; use anyio's task group or scope"
            for line, name in used
        )
    return faults


def swallowed_cancellations(tree: Tree, allowed: Reasons) -> list[str]:
    """Handlers that catch a cancellation and do not end in `raise`."""
    faults: list[str] = []
    for module in tree:
        caught = [
            node
            for node in ast.walk(module.tree)
            if isinstance(node, ast.ExceptHandler) and _catches_cancellation(node) and not _ends_in_raise(node)
        ]
        if module.path in allowed:
            if not caught:
                faults.append(f"{module.path}: swallows nothing any more; take its row out of SWALLOWS")
            continue
        faults.extend(
            f"{module.at(node.lineno)}: a cancellation may stop here; end the handler in 'raise', or catch 'Exception'"
            for node in caught
        )
    return faults


def yields_in_scopes(tree: Tree) -> list[str]:
    """Generators that yield while a task group, cancel scope or timeout is open."""
    return [
        f"{module.at(line)}: {name} yields inside {scope!r}; put events into a buffer, or make it a context manager"
        for module in tree
        for name, node in functions(module.tree)
        if not any(name_of(item) in {"contextmanager", "asynccontextmanager"} for item in node.decorator_list)
        for line, scope in _scoped_yields(node, "")
    ]


def prints(tree: Tree, rooms: Sequence[str]) -> list[str]:
    """Calls of `print` outside the rooms that talk to a terminal."""
    return [
        f"{module.at(node.lineno)}: prints; the library tells by events and by 'logging', only {', '.join(rooms)} prints"
        for module in tree
        if module.room not in rooms
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def rooms_without_purpose(tree: Tree) -> list[str]:
    """Folders without an `__init__.py`, or with one that does not say what the room is for."""
    folders = {path for module in tree for path in _parents(module.path)}
    faults = [f"{folder}: no __init__.py; say there what the room is for" for folder in sorted(folders)
              if f"{folder}__init__.py" not in {module.path for module in tree}]  # fmt: skip
    return faults + [
        f"{module.path}: no docstring; say in one sentence what the room is for"
        for module in tree
        if module.is_package and not ast.get_docstring(module.tree)
    ]


def _inside(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")


def _passed_on(module: Module, bound: Mapping[str, Bound], name: str) -> str | None:
    """Where a name really comes from, or None when this module defines or adopts it."""
    found = bound.get(name)
    if found is None:
        return "the file that defines it" if "__getattr__" in bound else None
    adopted = found.origin is not None and not _inside(found.origin, PACKAGE) and name in (listed(module) or ())
    return None if found.origin is None or adopted else repr(found.origin)


def _room(name: str) -> str:
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else PACKAGE


def _folder(tree: Tree, name: str, room: str) -> str | None:
    """The folder right under a room that a module lies in."""
    parts = name.split(".")
    inside = len(parts) > 2 and parts[1] == room
    folder = ".".join(parts[:3])
    return parts[2] if inside and folder in tree.modules and tree.modules[folder].is_package else None


def _parents(path: str) -> Iterator[str]:
    parts = path.split("/")[:-1]
    for depth in range(len(parts) + 1):
        yield "".join(f"{part}/" for part in parts[:depth])


def _lines(node: Function) -> int:
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node, clean=False) is not None:
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def _parameters(node: Function) -> int:
    by_position = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    count = len(by_position) - (by_position[:1] in (["self"], ["cls"]))
    count += (node.args.vararg is not None) + (node.args.kwarg is not None)
    return count if node.name == "__init__" else count + len(node.args.kwonlyargs)


def _asyncio_names(tree: Tree, module: Module) -> Iterator[tuple[int, str]]:
    aliases = {
        alias.asname or alias.name
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "asyncio"
    }
    for found in tree.imports(module):
        if _inside(found.target, "asyncio") and found.name in _LOOSE:
            yield found.line, f"asyncio.{found.name}"
    for node in ast.walk(module.tree):
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in aliases and name in _LOOSE:
                yield node.lineno, f"asyncio.{name}"
            case ast.Attribute(attr="create_task"):  # a loop's own, whatever the loop is called
                yield node.lineno, "create_task"
            case _:
                pass


def _catches_cancellation(node: ast.ExceptHandler) -> bool:
    match node.type:
        case None:
            return True
        case ast.Tuple(elts=kinds):
            return any(name_of(kind) in _CANCELLATIONS for kind in kinds)
        case kind:
            return name_of(kind) in _CANCELLATIONS


def _ends_in_raise(node: ast.ExceptHandler) -> bool:
    return isinstance(node.body[-1], ast.Raise)


def _scoped_yields(node: ast.AST, scope: str) -> Iterator[tuple[int, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.Lambda | ast.ClassDef):
            continue  # a function inside is looked at on its own
        if isinstance(child, ast.Yield | ast.YieldFrom) and scope:
            yield child.lineno, scope
        inner = scope
        if isinstance(child, ast.With | ast.AsyncWith):
            opened = (name_of(item.context_expr) for item in child.items)
            inner = next((name for name in opened if name in _SCOPES), scope)
        yield from _scoped_yields(child, inner)
