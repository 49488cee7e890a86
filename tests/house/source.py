"""The library as text: its modules, what they import, what they define. Nothing is imported or run to find out."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

PACKAGE = "antiphon"
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Import:
    """One import statement's hold on one other module."""

    line: int
    target: str
    """The dotted module that is reached; a name inside it is in `name`."""
    name: str | None
    """The name taken from the module, or None when the module itself was taken."""
    deferred: bool
    """It stands inside a function, so it does not run when the module is loaded."""


@dataclass(frozen=True)
class Bound:
    """A name that a module binds at its top level."""

    origin: str | None
    """The module it was imported from, or None when it is defined here."""
    documented: bool
    """A docstring belongs to it: in a class or function, or as the string after an assignment."""


@dataclass(frozen=True)
class Module:
    """One file of the library."""

    name: str
    path: str
    """Relative to the package's folder, with forward slashes."""
    text: str
    tree: ast.Module
    is_package: bool

    @property
    def room(self) -> str:
        """The floor that the file lives on: the folder or file right under the package, or the package's own face."""
        return self.name.split(".")[1] if "." in self.name else PACKAGE

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    def at(self, line: int) -> str:
        return f"{self.path}:{line}"


@dataclass(frozen=True)
class Tree:
    """All modules by dotted name."""

    modules: Mapping[str, Module] = field(default_factory=dict[str, Module])

    @classmethod
    def read(cls, root: Path) -> "Tree":
        """The package that lies in a folder."""
        files = sorted(root.rglob("*.py"))
        return cls.of({file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in files})

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> "Tree":
        """A package from path and text, for rules that are tried on planted faults."""
        modules = [_module(path, text) for path, text in texts.items()]
        return cls({module.name: module for module in modules})

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules.values())

    def imports(self, module: Module) -> list[Import]:
        """Everything that the module imports: at the top, under `TYPE_CHECKING`, inside functions, by string."""
        return [
            found
            for node, deferred in _walk(module.tree, deferred=False)
            for found in self._resolve(module, node, deferred=deferred)
        ]

    def _resolve(self, module: Module, node: ast.AST, *, deferred: bool) -> Iterator[Import]:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield Import(node.lineno, alias.name, None, deferred)
            case ast.ImportFrom(names=names):
                base = _absolute(module, node)
                for alias in names:
                    inner = f"{base}.{alias.name}"
                    if inner in self.modules:
                        yield Import(node.lineno, inner, None, deferred)
                    else:
                        yield Import(node.lineno, base, alias.name, deferred)
            case ast.Call(func=func, args=[ast.Constant(value=str(target)), *_]) if name_of(func) in _BY_STRING:
                yield Import(node.lineno, target, None, deferred)
            case _:
                return


def bindings(module: Module) -> dict[str, Bound]:
    """The names of a module's top level, those under `if` and `try` included."""
    found: dict[str, Bound] = {}
    _bind(module, module.tree.body, found)
    return found


def listed(module: Module) -> list[str] | None:
    """The names in `__all__` as written, or None when there is none."""
    for node in module.tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=value)
                | ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value)
            ):
                return list(ast.literal_eval(value))
            case _:
                pass
    return None


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Every function with its qualified name, nested ones and methods included."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield prefix + node.name, node
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        else:
            yield from functions(node, prefix)


def name_of(node: ast.AST) -> str:
    """The last word of what is called or used: `f`, `module.f` and `f(...)` all give `f`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=func):
            return name_of(func)
        case _:
            return ""


_BY_STRING = ("import_module", "__import__", "find_spec")


def _module(path: str, text: str) -> Module:
    parts = path.removesuffix(".py").split("/")
    is_package = parts[-1] == "__init__"
    name = ".".join([PACKAGE, *(parts[:-1] if is_package else parts)])
    return Module(name, path, text, ast.parse(text, filename=path), is_package)


def _walk(node: ast.AST, *, deferred: bool) -> Iterator[tuple[ast.AST, bool]]:
    for child in ast.iter_child_nodes(node):
        yield child, deferred
        yield from _walk(child, deferred=deferred or isinstance(child, Function | ast.Lambda))


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    drop = node.level - (1 if module.is_package else 0)
    base = parts[: len(parts) - drop]
    return ".".join([*base, node.module] if node.module else base)


def _bind(module: Module, body: list[ast.stmt], found: dict[str, Bound]) -> None:
    for node, following in zip_longest(body, body[1:]):
        described = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        match node:
            case ast.ImportFrom(names=names):
                for alias in names:
                    found[alias.asname or alias.name] = Bound(_absolute(module, node), documented=False)
            case ast.Import(names=names):
                for alias in names:
                    found[alias.asname or alias.name.split(".")[0]] = Bound(alias.name, documented=False)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                before = found.get(node.name)  # an overload's docstring may stand on any of its forms
                documented = ast.get_docstring(node) is not None or (before is not None and before.documented)
                found[node.name] = Bound(None, documented)
            case ast.Assign(targets=targets):
                for target in targets:
                    for name in ast.walk(target):
                        if isinstance(name, ast.Name):
                            found[name.id] = Bound(None, described)
            case ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = Bound(None, described)
            case ast.If(body=inner, orelse=other):
                _bind(module, inner, found)
                _bind(module, other, found)
            case ast.Try(body=inner, handlers=handlers):
                _bind(module, inner, found)
                for handler in handlers:
                    _bind(module, handler.body, found)
            case _:
                pass
