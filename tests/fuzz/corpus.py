"""
What fuzzing starts from: good documents, and inputs that have broken parsers elsewhere.

Every seed is tried as it is before anything is changed, so the list is also a table of bad input.
"""

import json
from typing import Any, Final

from tests.unit.clients.oci.registry_stub import (
    INDEX,
    MANIFEST,
    a_config,
    a_digest,
    a_manifest,
    an_index,
    docker_config,
    encode,
)

CONFIG: Final = a_config(3)
GOOD: Final = a_manifest(CONFIG, 3)
DOCKER: Final = "application/vnd.docker.distribution.manifest.v2+json"

# What JSON parsers disagree about, or have died of.
STRANGE_JSON: Final = (
    *(
        b"",
        b"null",
        b"true",
        b"0",
        b'""',
        b"[]",
        b"{}",
        b" ",
        b"\xef\xbb\xbf{}",
        b"\xff\xfe{\x00}\x00",
        b"{",
        b"}",
        b"{]",
        b"\x00",
    ),
    *(
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"1e400",
        b"-1e400",
        b"1e-400",
        b"2" * 5_000,
        b"-" + b"9" * 5_000,
        b"0." + b"1" * 5_000,
    ),
    *(b"[" * 1_000_000, b'{"a":' * 200_000, b'{"layers":[' * 100_000, b"[[]," * 100_000, b'{"manifests":' * 100_000),
    *(
        b'"\\ud800"',
        b'{"mediaType":"\\ud800"}',
        b'{"mediaType":"\\u0000"}',
        b'{"\\udfff":1}',
        b'"\xed\xa0\x80"',
        b'"\x80"',
    ),
    *(
        b'{"a":1,"a":2}',
        b'{"layers":null,"layers":[]}',
        b'{"schemaVersion":2,"schemaVersion":1}',
        b'{"":""}',
        b'{"a":1}{"b":2}',
    ),
    *(
        b'{"a":1,}',
        b"[1,]",
        b"// comment\n{}",
        b"{'a':1}",
        b"{a:1}",
        b'{"a":01}',
        b'{"a":+1}',
        b'{"a":.5}',
        b'{"a":1.}',
        b'"\n"',
    ),
)

MANIFESTS: Final = (
    GOOD,
    a_manifest(CONFIG, 3, mediaType=DOCKER),
    a_manifest(CONFIG, 3, mediaType=None),
    a_manifest(CONFIG, 3, artifactType="application/x", subject={"digest": a_digest("x")}),
    a_manifest(CONFIG, 3, manifests=[]),
    a_manifest(CONFIG, 3, manifests=None, annotations={"a": "b"}),
    a_manifest(CONFIG, 0),
    a_manifest(CONFIG, 257),
    a_manifest(CONFIG, 20_000),
    *(
        a_manifest(CONFIG, layers=[{"digest": a_digest("x"), "size": size}])
        for size in (-1, 0, 2**63, 2**64, 2**70, 1e400, 1.5, True)
    ),
    *(
        a_manifest(CONFIG, layers=[{"digest": text, "size": 1, "urls": ["http://169.254.169.254/"]}])
        for text in (
            "",
            ":",
            "sha256:",
            "sha256:../../x",
            "sha256:" + "A" * 64,
            "sha512:" + "a" * 64,
            "md5:" + "a" * 32,
            "x" * 100_000,
        )
    ),
    a_manifest(CONFIG, layers=[{"digest": a_digest("x"), "size": 1}, {"digest": a_digest("x"), "size": 2}]),
    a_manifest(CONFIG, schemaVersion=1, fsLayers=[{"blobSum": a_digest("x")}], history=[]),
    *STRANGE_JSON,
)

INDEXES: Final = (
    an_index((GOOD, "amd64"), (GOOD + b" ", "arm64")),
    an_index((GOOD, "unknown")),
    an_index(*[(GOOD, "amd64")] * 256),
    an_index(*[(GOOD, "amd64")] * 2_000),
    an_index(layers=[]),
    an_index(mediaType=MANIFEST),
    encode(
        {"manifests": [{"digest": a_digest("x"), "platform": None, "annotations": {"vnd.docker.reference.type": "x"}}]}
    ),
    encode({"mediaType": INDEX}),
    encode({"mediaType": INDEX, "manifests": None}),
    *STRANGE_JSON,
)

CONFIGS: Final = (
    CONFIG,
    a_config(0),
    a_config(3, "arm64", variant="v8", config={"Labels": {"a": "\u202e\x00"}}),
    a_config(4),
    encode({"rootfs": {"diff_ids": [a_digest("x"), "", "sha256:x"]}}),
    encode({"os": None, "architecture": 5, "rootfs": []}),
    encode({"rootfs": {"diff_ids": ["x"] * 100_000}}),
    *STRANGE_JSON,
)

REFERENCES: Final = (
    *(
        "nginx",
        "nginx:1.27",
        "docker.io/library/nginx",
        "registry.example:5000/team/app:1.0",
        "localhost/a",
        "[::1]:5000/a/b:c",
    ),
    *(f"a/b@{a_digest('x')}", f"a/b:c@{a_digest('x')}", "a.b/c", "a__b/c--d/e.f", "xn--a.example/b"),
    *(
        "..",
        "../..",
        "a/../b",
        "a//b",
        "/a",
        "a/",
        "a:",
        ":a",
        "@",
        "a@",
        "a@b",
        "a@sha256:",
        "a:b:c",
        "a@b@c",
        "a b",
        "a\nb",
        "a\x00b",
    ),
    *(
        "a:0/b",
        "a:65536/b",
        "a:-1/b",
        "a:99999999999999999999/b",
        "127.1/a:b",
        "0x7f000001/a",
        "2130706433:80/a",
        "[::1/a",
        "[]/a",
    ),
    *("a。b/c", "ａ/b", "аpple.example/b", "A/B", "a/B", "İ/a", "ß.example/a", "\ud800/a", "\u202egnp.exe/a", "🐳/a"),
    *("https://a/b", "http://169.254.169.254/latest", "user:pw@host/a", "file:///etc/passwd", "a?b=c", "a#b", "a%2fb"),
    *(
        "a" * 255,
        "a" * 256,
        "a/" * 2_000 + "a",
        "a." * 2_000 + "a",
        "-" * 4_000,
        "_" * 4_000,
        "a:" + "b" * 129,
        "a" * 64,
        "f" * 64,
        "x" * 5_000,
    ),
)

CHALLENGES: Final = (
    'Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:library/nginx:pull"',
    *(
        'Basic realm="x"',
        "Basic",
        "Bearer",
        "Negotiate",
        "Basic realm=x, Bearer realm=y",
        'Digest realm="a\\"b", nonce="c", qop="auth"',
    ),
    *(
        "",
        ",",
        "=",
        '"',
        "\\",
        "Bearer realm=",
        'Bearer realm="',
        'Bearer realm="\\',
        'Bearer realm="a" "b"',
        "Bearer =x",
        'Bearer ="x"',
    ),
    *(
        "Bearer realm=\r\nX: y",
        "Bearer\x00realm=x",
        "Bearer\trealm\t=\tx",
        "Bearer realm=x;y",
        'Bearer realm="\u2028"',
        "\ud800",
    ),
    *(
        "a=" * 5_000,
        'a="' * 5_000,
        "a " * 5_000,
        "\\" * 5_000,
        '"' * 5_001,
        'Bearer realm="' + "\\" * 9_000,
        "," * 9_000,
        " " * 9_000,
    ),
    *(
        'Bearer realm="' + "a" * 9_000 + '"',
        "Bearer " + "a=b," * 3_000,
        'Bearer realm="\\"\\"\\"',
        "é" * 3_000,
        "B" * 9_000,
    ),
)

DOCKER_CONFIGS: Final = (
    docker_config({"registry.example": "ada:pw", "https://index.docker.io/v1/": "a:b"}, credsStore="desktop"),
    encode({"auths": {"a": {"identitytoken": "x"}}, "credHelpers": {"b": "ecr-login"}}),
    encode({"registry.example": {"auth": "YTpi"}}),
    encode({"auths": {"*.example/a/b": {"auth": "YTpi\x00"}, "[::1]:5": {"username": "a", "password": "b"}}}),
    encode(
        {
            "auths": {
                key: {"auth": "YTpi"} for key in ("", "/", ":", "[", "]:", "://", "a:b:c", "*" * 500, "[a-", "?" * 60)
            }
        }
    ),
    *(encode({"auths": {"a": {"auth": text}}}) for text in ("!", "YQ", "YTpi\n", "AAAA" * 1_000)),
    encode({"credsStore": "../../x", "credHelpers": {"a": "b;c"}}),
    *STRANGE_JSON,
)

RULES: Final = (
    b"registries:\n- host: registry.example:5000\n  private: true\n  mirrors: [m.example]\n  realms: [l.example]\nfromNodes: false\n",
    b"refuse: [198.51.100.0/24, 'fd00::/8']\nregistries: [{host: docker.io}]\n",
    *(
        b"",
        b"#",
        b"---\n---\n",
        b"[]",
        b"{}",
        b"null",
        b"a: b",
        b"\t",
        b"- - - - -",
        b"? ? ?",
        b"&a [*a]",
        b"!!python/object:os.system {}",
    ),
    b"a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d]\n",
    *(
        b"[" * 100_000,
        b"{a: " * 50_000,
        b"- " * 50_000,
        b"a:\n " * 10_000,
        b"registries: [" + b"{host: a.example}," * 2_000 + b"]",
    ),
    *(
        b"refuse: [0/0, 1.2.3.4/33, '::/129', '%']",
        b"registries: [{host: [a]}]",
        b"registries: {host: a}",
        b"\xff\xfe",
        b"a: \x00",
    ),
)

URLS: Final = (
    *(
        "https://auth.example/token?a=b#c",
        "http://a.example:80/x",
        "https://[::1]:443/",
        "/v2/next",
        "//a.example/x",
        "?a",
        "#b",
        "",
    ),
    *(
        "https://u:p@a.example/",
        "https://a.example\\@b.example/",
        "https://a.example:443:80/",
        "https://[::1",
        "https://]/",
        "https://a b/",
    ),
    *(
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:,x",
        "https:///x",
        "https:a.example",
        "HTTPS://A.EXAMPLE/",
        "https://a.example%2f@b/",
    ),
    *(
        "https://127.1/",
        "https://0x7f.1/",
        "https://１２７.0.0.1/",
        "https://a。b/",
        "https://\ud800/",
        "https://a\r\n.example/",
        "http://" + "a." * 5_000,
    ),
)


def plain(data: bytes) -> Any:
    """The document as plain data, or None when it is no JSON one could change inside."""
    if len(data) > 20_000:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
