"""
A scheduler of forty lines: binds every pod to the node with the fewest pods, by name if equal.

It follows the pods with a watch and reads the address from the kubeconfig, as schedulers do. Tests start it as a program.
"""

import json
import sys
import urllib.request
from pathlib import Path


def main(kubeconfig: str) -> None:
    server = json.loads(Path(kubeconfig).read_text())["clusters"][0]["cluster"]["server"]
    with urllib.request.urlopen(f"{server}/api/v1/nodes") as answer:
        load = {node["metadata"]["name"]: 0 for node in json.load(answer)["items"]}
    seen: set[str] = set()
    with urllib.request.urlopen(f"{server}/api/v1/pods?watch=true") as events:
        for line in events:
            event = json.loads(line)
            pod = event["object"]
            metadata = pod["metadata"]
            if event["type"] == "DELETED" or pod["spec"].get("nodeName") or metadata["uid"] in seen:
                continue
            seen.add(metadata["uid"])
            node = min(load, key=lambda name: (load[name], name))
            load[node] += 1
            bind(server, metadata["namespace"], metadata["name"], node)


def bind(server: str, namespace: str, name: str, node: str) -> None:
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    request = urllib.request.Request(
        f"{server}/api/v1/namespaces/{namespace}/pods/{name}/binding",
        data=json.dumps(binding).encode(),
        headers={"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request).close()


if __name__ == "__main__":
    main(sys.argv[1])
