"""
The QoS page for browsers: one table that refreshes itself, without anything from other servers.

The page is complete without its script. The script loads the page again and replaces the table, unless the reader has
paused it, so focus and scroll position stay. A broken promise is a word, not only a colour.
"""

import base64
import hashlib
import html
from datetime import UTC, datetime
from typing import Final

from lamina.qos.page_formats import go_duration
from lamina.qos.qos_view import ControllerView, QosView

_STYLE: Final = """
:root{color-scheme:light dark}
body{font:1rem/1.4 system-ui,sans-serif;margin:1.5rem;max-width:80rem}
table{border-collapse:collapse;width:100%}
caption{text-align:left;padding:.5rem 0}
th,td{padding:.25rem .75rem;text-align:right;border-bottom:1px solid;border-color:color-mix(in srgb,currentColor 25%,transparent)}
th:first-child,td:first-child{text-align:left}
td{font-variant-numeric:tabular-nums}
.broken{font-weight:bold}
.scroll{overflow-x:auto}
"""
_SCRIPT: Final = """
const box=document.getElementById('refresh');
setInterval(async()=>{
  if(!box.checked||document.hidden)return;
  try{
    const answer=await fetch(location.href,{headers:{Accept:'text/html'},cache:'no-store'});
    if(!answer.ok)throw new Error(answer.status);
    const page=new DOMParser().parseFromString(await answer.text(),'text/html');
    document.getElementById('figures').replaceWith(page.getElementById('figures'));
    document.getElementById('problem').textContent='';
  }catch(error){
    document.getElementById('problem').textContent='The scheduler does not answer; these figures are old.';
  }
},2000);
"""


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


POLICY: Final = (
    f"default-src 'none'; style-src {_hash(_STYLE)}; script-src {_hash(_SCRIPT)}; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'"
)
"""Value of the Content-Security-Policy header: nothing but the page's own style and script."""

_COLUMNS: Final = ("Controller", "QoS", "SLO", "Promise", "TTV", "Running pods", "Running", "Waiting", "Binding")


def html_page(view: QosView) -> bytes:
    """Return the page."""
    broken = sum(each.slack < 0 for each in view.controllers)
    moment = datetime.fromtimestamp(view.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    head = "".join(f'<th scope="col">{name}</th>' for name in _COLUMNS)
    rows = "\n".join(map(_row, view.controllers))
    note = f"<p>{view.omitted} more controllers and replicas are not shown.</p>" if view.omitted else ""
    caption = f"{len(view.controllers)} controllers, {broken} below their SLO, at {moment}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Lamina QoS: {broken} below their SLO</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>Availability of controllers</h1>
<p><label><input type="checkbox" id="refresh" checked> Refresh every two seconds</label>
<span id="problem" role="status"></span></p>
<div id="figures" class="scroll">
<table>
<caption>{caption}</caption>
<thead><tr>{head}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
{note}</div>
<p>Also: <a href="controllers">controllers as text</a>, <a href="replicas">replicas as text</a>, <a href="qos.json">JSON</a></p>
</main>
<script>{_SCRIPT}</script>
</body>
</html>
""".encode()


def _row(each: ControllerView) -> str:
    times = each.times
    cells = (
        f"{each.qos:.3f}",
        f"{each.promise.slo:.3f}",
        '<span class="broken">broken</span>' if each.slack < 0 else "kept",
        go_duration(each.slack),
        f"{each.counts.running} of {each.counts.running + each.counts.pending}",
        *map(go_duration, (times.effective + times.discarded, times.waiting, times.binding)),
    )
    name = html.escape(each.name)
    return f'<tr><th scope="row">{name}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
