"""The script that writes the tables: what it takes from Kubernetes' files, and what it refuses."""

import pytest

import protobuf_tables

PROTO = """
package k8s.io.api.{group}.v1;

// a comment; with a semicolon
message Thing {{
  // comment
  optional .k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta metadata = 1;

  optional string plain = 2;

  optional int32 pointer = 3;

  repeated string list = 4;

  map<string, bytes> data = 5;

  optional .k8s.io.apimachinery.pkg.apis.meta.v1.Time time = 6;

  optional Inner inner = 7;

  optional Words words = 8;
}}

message Inner {{
}}

message Words {{
  // items, if empty, will result in an empty slice

  repeated string items = 1;
}}
"""
GO = """
const GroupName = "example.com"

// Thing is one.
type Thing struct {
	TypeMeta `json:",inline"`
	ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// plain has a comment
	Plain string `json:"plain,omitempty" protobuf:"bytes,2,opt,name=plain"`
	Pointer *int32 `json:"pointer,omitempty" protobuf:"varint,3,name=pointer"`
	List []string `json:"list" protobuf:"bytes,4,rep,name=list"`
	Data map[string][]byte `json:"data,omitempty" protobuf:"bytes,5,rep,name=data"`
	Time Time `json:"time" protobuf:"bytes,6,opt,name=time"`
	Inner `json:",inline" protobuf:"bytes,7,opt,name=inner"`
	Words Words `json:"words" protobuf:"bytes,8,opt,name=words"`
}
"""
META = """
package k8s.io.apimachinery.pkg.apis.meta.v1;

message ObjectMeta {
  optional bool on = 1;
}

message Time {
  optional int64 seconds = 1;
}
"""
META_GO = (
    'const GroupName = "meta"\ntype ObjectMeta struct {\n\tOn bool `json:"on" protobuf:"varint,1,opt,name=on"`\n}\n'
)

EXPECTED = """\
@meta/v1
ObjectMeta 1:on:b
@example.com/v1
Inner
Thing 1:metadata:meta/v1.ObjectMeta 2:plain:s? 3:pointer:i 4:list:*s 5:data:%y 6:time:!Time 7::^Inner 8:words:Words
Words 1::*s
"""


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two small modules; the tables are written beside them."""
    monkeypatch.setattr(protobuf_tables, "TABLES", tmp_path / "tables.txt")
    for name, proto, go in (("api/things", PROTO.format(group="things"), GO), ("machinery/meta", META, META_GO)):
        folder = tmp_path / name / "v1"
        folder.mkdir(parents=True)
        (folder / "generated.proto").write_text(proto, encoding="utf-8")
        (folder / "types.go").write_text(go, encoding="utf-8")
    return [str(tmp_path / "api"), str(tmp_path / "machinery")]


def test_a_table_has_numbers_names_types_and_marks(folders):
    assert protobuf_tables.main(folders) == 0
    assert EXPECTED == protobuf_tables.TABLES.read_text(encoding="utf-8")


def test_a_check_writes_nothing(folders, capsys):
    assert protobuf_tables.main(["--check", *folders]) == 1
    assert not protobuf_tables.TABLES.exists()
    protobuf_tables.main(folders)
    assert protobuf_tables.main(["--check", *folders]) == 0
    assert capsys.readouterr().out.endswith("up to date\n")


def test_without_folders_it_says_how_it_is_used(capsys):
    assert protobuf_tables.main([]) == 2
    assert "API_FOLDER APIMACHINERY_FOLDER" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        pytest.param(
            "optional string plain", "optional double plain", "refers to k8s.io.api.things.v1.double", id="type"
        ),
        pytest.param("optional string plain = 2;", "oneof plain;", "cannot read", id="syntax"),
        pytest.param("plain = 2", "plain = 22", "no Go tag for plain = 22", id="tag"),
    ],
)
def test_what_it_does_not_understand_ends_the_script(folders, tmp_path, before, after, problem):
    path = tmp_path / "api/things/v1/generated.proto"
    path.write_text(path.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")

    with pytest.raises(SystemExit, match=problem):
        protobuf_tables.main(folders)
