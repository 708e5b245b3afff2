"""
Generate the protobuf message tables of Kubernetes: `protobuf_tables.py [--check] API_FOLDER APIMACHINERY_FOLDER`.

The folders are the Go modules ``k8s.io/api`` and ``k8s.io/apimachinery`` of one version, as ``go mod download -json``
names them. Only facts are taken from them: field numbers and types from ``generated.proto``; JSON names, pointers and
``omitempty`` from the struct tags of the Go types, which alone decide the JSON form. The result has one line for each
message; `lamina.wire.kube_protobuf.message_tables` describes and reads the format.

With ``--check``, write nothing and report whether the tables are up to date.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

TABLES: Final = Path(__file__).resolve().parent.parent / "src/lamina/wire/kube_protobuf/message_tables.txt"

SCALARS: Final = {"string": "s", "bool": "b", "int32": "i", "int64": "l", "bytes": "y"}
# Messages whose JSON form is not an object; the decoder has one function for each.
FORMS: Final = {
    "k8s.io.apimachinery.pkg.api.resource.Quantity": "Quantity",
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": "IntOrString",
    "k8s.io.apimachinery.pkg.apis.meta.v1.Time": "Time",
    "k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime": "MicroTime",
    "k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1": "Json",
    "k8s.io.apimachinery.pkg.runtime.RawExtension": "Json",
}
# No other message refers to them. The list of core/v1 is that of meta/v1.
OMITTED: Final = {"k8s.io.apimachinery.pkg.apis.meta.v1.Duration", "k8s.io.api.core.v1.List"}
META: Final = "k8s.io.apimachinery.pkg.apis.meta.v1"
# Packages whose objects only API servers or tests send, and one whose Go types are those of another package.
SKIPPED: Final = re.compile(
    r"\.(?:admission|admissionregistration\.v1alpha1|apidiscovery|imagepolicy|apiserverinternal|testapigroup)\b"
)

_PACKAGE: Final = re.compile(r"^package ([\w.]+);", re.MULTILINE)
_MESSAGE: Final = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD: Final = re.compile(r"^  (?:optional|repeated|(?=map<)) ?(map<string, )?([\w.]+)>? (\w+) = (\d+);", re.MULTILINE)
_GROUP: Final = re.compile(r'^const GroupName = "([\w.]*)"', re.MULTILINE)
_STRUCT: Final = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_TAGGED: Final = re.compile(r'^\t(?:\w+ +)?(\S+)\s+`json:"([^"]*)"[^`]*?protobuf:"\w+,(\d+)[^"]*"[^`]*`', re.MULTILINE)


class TagFacts(NamedTuple):
    """What the tag of a Go field says about its JSON form."""

    name: str
    inline: bool
    drops_zero: bool
    """Whether its zero value is missing in JSON: no pointer, and ``omitempty``."""


class ProtoPackage(NamedTuple):
    """One package: its API version, and the texts of its files."""

    name: str
    version: str
    proto: str
    go: str


def packages(folders: list[Path]) -> dict[str, ProtoPackage]:
    """Return all packages, by name, the metadata first."""
    found = {}
    for folder in folders:
        for path in sorted(folder.rglob("generated.proto")):
            proto = path.read_text(encoding="utf-8")
            name = _PACKAGE.findall(proto)[0]
            if SKIPPED.search(name):
                continue
            go = "\n".join(
                one.read_text(encoding="utf-8")
                for one in sorted(path.parent.glob("*.go"))
                if not one.name.endswith("_test.go") and "generated" not in one.name
            )
            group = next(iter(_GROUP.findall(go)), "")
            found[name] = ProtoPackage(name, "/".join(filter(None, (group, path.parent.name))), proto, go)
    return dict(sorted(found.items(), key=lambda item: (item[0] != META, item[0])))


def tag_facts(go: str) -> dict[str, dict[int, TagFacts]]:
    """Return the facts of every struct with protobuf tags, by struct and field number."""
    structs: dict[str, dict[int, TagFacts]] = {}
    for struct, body in _STRUCT.findall(go):
        for kind, tag, number in _TAGGED.findall(body):
            name, *options = tag.split(",")
            facts = TagFacts(name, "inline" in options, "omitempty" in options and not kind.startswith("*"))
            structs.setdefault(struct, {})[int(number)] = facts
    return structs


def lines(found: dict[str, ProtoPackage]) -> Iterator[str]:
    """Yield a line for each package that is an API version, and one for each of its messages."""
    for package in found.values():
        if not package.name.startswith(("k8s.io.api.", META)):
            continue
        yield f"@{package.version}"
        facts = tag_facts(package.go)
        for message, body in sorted(_MESSAGE.findall(package.proto)):
            if f"{package.name}.{message}" in FORMS.keys() | OMITTED:
                continue
            fields = list(_FIELD.findall(body))
            if len(fields) != sum(line.rstrip().endswith(";") for line in body.splitlines() if "//" not in line):
                raise SystemExit(f"lamina: {package.name}.{message} has a field that the script cannot read")
            written = [field_text(found, package, facts.get(message, {}), body, one) for one in fields]
            yield " ".join([message, *written])


def field_text(
    found: dict[str, ProtoPackage],
    package: ProtoPackage,
    facts: dict[int, TagFacts],
    body: str,
    field: tuple[str, str, str, str],
) -> str:
    """Return the text of one field: number, JSON name, type with its marks."""
    mapped, kind, name, number = field
    repeated = bool(re.search(rf"^  repeated \S+ {name} = {number};", body, re.MULTILINE))
    known = facts.get(int(number))
    if known is None:
        # A named list of Go, which protobuf wraps into a message and JSON does not.
        if name != "items" or not repeated:
            raise SystemExit(f"lamina: {package.name} has no Go tag for {name} = {number}")
        known = TagFacts("", inline=True, drops_zero=False)
    marks = "%" if mapped else "*" if repeated else "^" if known.inline else ""
    end = "?" if known.drops_zero and kind in SCALARS and not marks else ""
    return f"{number}:{known.name}:{marks}{type_text(found, package, kind)}{end}"


def type_text(found: dict[str, ProtoPackage], package: ProtoPackage, kind: str) -> str:
    """Return the text of a type: a letter, a form, or a message with its API version unless it is the same."""
    if kind in SCALARS:
        return SCALARS[kind]
    whole = kind.removeprefix(".") if kind.startswith(".") else f"{package.name}.{kind}"
    if whole in FORMS:
        return f"!{FORMS[whole]}"
    owner, _, message = whole.rpartition(".")
    if owner not in found or f"\nmessage {message} {{" not in found[owner].proto:
        raise SystemExit(f"lamina: {package.name} refers to {whole}, which is in none of the folders")
    return message if owner == package.name else f"{found[owner].version}.{message}"


def main(arguments: list[str]) -> int:
    """Write the tables, or compare them; return the exit code."""
    folders = [Path(one) for one in arguments if not one.startswith("-")]
    found = packages(folders)
    if META not in found:
        print("lamina: usage: protobuf_tables.py [--check] API_FOLDER APIMACHINERY_FOLDER", file=sys.stderr)
        return 2
    text = "\n".join(lines(found)) + "\n"
    same = TABLES.is_file() and TABLES.read_text(encoding="utf-8") == text
    if "--check" in arguments:
        print("up to date" if same else f"{TABLES.name} is out of date")
        return 0 if same else 1
    TABLES.write_text(text, encoding="utf-8")
    print(f"{len(text.splitlines())} lines, {len(text)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
