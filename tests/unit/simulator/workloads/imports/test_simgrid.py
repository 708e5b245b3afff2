"""SimGrid platforms: which hosts become nodes, and XML that means harm."""

import pytest

from lamina.model.resources import amounts
from tests.unit.simulator.workloads.imports.harness import SHORT, a_job, a_workload, bring, put, refused

HEAD = (
    '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "http://simgrid.example/simgrid.dtd">\n<platform version="4.1">\n'
)


def nodes(folder, inside, **entry):
    put(folder, "p.xml", f"{HEAD}{inside}</platform>")
    put(folder, "w.json", a_workload(a_job(), short=SHORT))
    return bring(folder, batsim="w.json", platform="p.xml", **entry)


def wrong(folder, text):
    put(folder, "p.xml", text)
    put(folder, "w.json", a_workload(a_job(), short=SHORT))
    return refused(folder, batsim="w.json", platform="p.xml")


def test_hosts_become_nodes_and_the_master_does_not(tmp_path):
    inside = """
    <host id="Graphene-1" speed="1Gf"><prop id="role" value="master"/></host>
    <host id="Graphene-2" speed="1Gf" core="4"><prop id="core" value="6"/><prop id="memory" value="8Gi"/></host>
    <host id="Graphene-3" speed="16.673E9f,1Gf" core="2"/>
    <link id="x" bandwidth="1GBps"/>
    """

    found = nodes(tmp_path, inside).nodes

    assert ["graphene-2", "graphene-3"] == [node.name for node in found]
    assert [
        amounts({"cpu": 6, "memory": "8Gi", "pods": 110}),
        amounts({"cpu": 2, "memory": "4Gi", "pods": 110}),
    ] == [node.allocatable for node in found]


def test_a_cluster_stands_for_all_its_hosts(tmp_path):
    inside = '<cluster id="c" prefix="a" suffix=".x" radical="0-2,5" speed="1Gf" core="1"/>'

    assert ["a0.x", "a1.x", "a2.x", "a5.x"] == [node.name for node in nodes(tmp_path, inside).nodes]


@pytest.mark.parametrize(("speed", "seconds"), [("1Mf", 4.0), ("2Mf", 2.0), ("4e6f", 1.0), ("500kf,9Gf", 8.0)])
def test_operations_are_counted_at_the_speed_of_the_slowest_host(tmp_path, speed, seconds):
    put(tmp_path, "p.xml", f'{HEAD}<host id="a" speed="1Ef"/><host id="b" speed="{speed}"/></platform>')
    put(tmp_path, "w.json", a_workload(a_job(), short={"type": "parallel_homogeneous", "cpu": 4e6}))

    (arrival,) = bring(tmp_path, batsim="w.json", platform="p.xml").arrivals

    assert seconds == arrival.life.seconds


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            f'{HEAD}<host id="a" speed="1Gf"/>', "p.xml:4: is not a platform in XML (no element found)", id="cut"
        ),
        pytest.param("", "p.xml:1: is not a platform in XML (no element found)", id="empty"),
        pytest.param(f"{HEAD}</platform>", "p.xml: has no host that runs jobs", id="no host"),
        pytest.param(f'{HEAD}<host id="a"/></platform>', "p.xml:4: speed '' is not understood", id="no speed"),
        pytest.param(f'{HEAD}<host id="a" speed="-1Gf"/></platform>', "p.xml:4: speed '-1Gf' is not", id="negative"),
        pytest.param(f'{HEAD}<host speed="1Gf"/></platform>', "p.xml:4: a host has no id", id="no id"),
        pytest.param(
            f'{HEAD}<host id="a" speed="1Gf"/>\n<host id="a" speed="1Gf"/></platform>',
            "p.xml:5: there is a second host 'a', the first is on line 4",
            id="twice",
        ),
        pytest.param(
            f'{HEAD}<host id="a" speed="1Gf" core="0"/></platform>', "p.xml:4: a host needs cores", id="no cores"
        ),
        pytest.param(
            f'{HEAD}<host id="a" speed="1Gf" core="many"/></platform>', "p.xml:4: 'many' is not a quantity", id="cores"
        ),
        pytest.param(
            f'{HEAD}<cluster prefix="a" radical="0-999999999" speed="1Gf"/></platform>',
            "p.xml:4: more than 100000 hosts",
            id="a billion hosts",
        ),
        pytest.param(
            f'{HEAD}<cluster prefix="a" radical="all" speed="1Gf"/></platform>', "p.xml:4: radical 'all'", id="radical"
        ),
        pytest.param(HEAD + "<zone>" * 70, "p.xml:4: nested too deep", id="deep"),
        pytest.param(
            '<!DOCTYPE platform [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><platform>&b;</platform>',
            "p.xml:1: declares an entity 'a'",
            id="entities",
        ),
        pytest.param(
            '<!DOCTYPE platform [<!ENTITY a SYSTEM "file:///etc/passwd">]><platform>&a;</platform>',
            "p.xml:1: declares an entity 'a'",
            id="a file as an entity",
        ),
        pytest.param('<?xml version="1.0" encoding="klingon"?><platform/>', "p.xml: is not a platform", id="encoding"),
    ],
)
def test_what_is_wrong_with_a_platform(tmp_path, text, told):
    (mistake,) = wrong(tmp_path, text)

    assert mistake.startswith(told), mistake


def test_nodes_come_from_one_place(tmp_path):
    put(tmp_path, "w.json", a_workload(a_job(), short=SHORT))

    assert ["scenario.yaml:7: platform: say nodes or platform, not both"] == refused(
        tmp_path, batsim="w.json", platform="w.json", nodes=4
    )
