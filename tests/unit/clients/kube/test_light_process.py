"""What a process loads that asks an API server questions and watches nothing."""

import subprocess
import sys


def test_a_process_that_only_asks_questions_does_not_load_aiohttp():
    """The publisher of a node agent has little memory, and no watches."""
    code = "import sys, lamina.clients.kube.transport, lamina.clients.kube.access; sys.exit('aiohttp' in sys.modules)"

    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode
