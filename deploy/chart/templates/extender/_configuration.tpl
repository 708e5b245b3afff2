{{/*
The scheduler's configuration for any choice of agents: the text that `lamina extender --print-config` prints, which a test
compares. The table lists the verbs of each agent in their order.
*/}}
{{- define "lamina.agentVerbs" -}}
safe:
- {verb: safe-overload, filters: true}
- {verb: safe-balance, alone: 10}
- {verb: low-risk-overcommitment, instead: safe-overload}
- {verb: target-load-packing, instead: safe-balance}
pigeon:
- {verb: pigeon-holing, alone: 10}
congestion:
- {verb: congestion, alone: 10}
foo:
- {verb: foo, filters: true, alone: 10}
layers:
- {verb: layers, weight: 5}
{{- end }}

{{/* The processes of the extender, as YAML: name, agents, port, pages and the name of that port. */}}
{{- define "lamina.extenderProcesses" -}}
{{- $extender := .Values.extender -}}
{{- if eq $extender.mode "process-per-agent" }}
{{- range $number, $agent := $extender.agents }}
- {name: extender-{{ $agent }}, agents: [{{ $agent }}], port: {{ add $extender.port $number }}, pages: {{ add $extender.pages $number }}, portName: pages-{{ $agent }}}
{{- end }}
{{- else }}
- {name: extender, agents: [{{ join ", " $extender.agents }}], port: {{ $extender.port }}, pages: {{ $extender.pages }}, portName: pages}
{{- end }}
{{- end }}

{{- define "lamina.schedulerConfiguration" -}}
{{- $extender := .Values.extender -}}
{{- $separate := eq $extender.mode "separate" -}}
{{- $verbs := include "lamina.agentVerbs" . | fromYaml -}}
{{- $alone := eq (len $extender.agents) 1 -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
# A lease of its own: with the default one it would wait for the cluster's own scheduler to stop. It needs a Role in
# this namespace with the lease under `resourceNames`; deploy/extender/rbac.yaml has my-scheduler in lamina-system.
leaderElection:
  leaderElect: true
  resourceName: my-scheduler
  resourceNamespace: {{ .Release.Namespace }}
# kube-scheduler sends an extender the nodes that it samples: max(5, 50 - nodes/125) % of all nodes, and 100 at
# least: 420 of 1000, 500 of 5000.
{{- if has "layers" $extender.agents }}
# Layers on other nodes would not be considered, so this samples all nodes. That costs time for every pod: with
# thousands of nodes and many pods a second, use less than 100, or 0 for the share above.
percentageOfNodesToScore: 100
{{- else }}
# That is enough for the agents used here. To consider every node, at the cost of time for every pod:
# percentageOfNodesToScore: 100
{{- end }}
profiles:
- schedulerName: my-scheduler
{{- if has "layers" $extender.agents }}
  plugins:
    score:
      disabled:
      # Layers are more precise than whole images; both together would count the same bytes twice.
      - name: ImageLocality
{{- end }}
# Asking any extender makes kube-scheduler place pods one by one: opportunistic batching is off for every profile.
# - nodeCacheCapable: kube-scheduler sends node names, not whole nodes, which are some hundred times as long. From
#   Kubernetes 1.33 on it must be true if there is a filterVerb: otherwise nodes come back without their pods, and the
#   scheduler's own plugins see every node as empty.
# - weight: an extender scores 0 to 10, multiplied by 10 and the weight: at weight 1 up to 100 points, as a plugin.
extenders:
{{- range $process := include "lamina.extenderProcesses" . | fromYamlArray }}
{{- $url := printf "http://127.0.0.1:%v/scheduler" $process.port }}
{{- if $separate }}{{ $url = printf "https://lamina-extender.%s.svc:%v/scheduler" $.Release.Namespace $process.port }}{{ end }}
{{- range $agent := $process.agents }}
{{- range $verb := get $verbs $agent }}
{{- $weight := 1 }}
{{- if $verb.weight }}{{ $weight = $verb.weight }}{{ else if and $alone $verb.alone }}{{ $weight = $verb.alone }}{{ end }}
{{- $entry := include "lamina.extenderEntry" (dict "url" $url "verb" $verb.verb "filters" $verb.filters "weight" $weight "separate" $separate) }}
{{- if $verb.instead }}
# An alternative to {{ $verb.instead }}; use the priority of only one of them:
{{- range splitList "\n" $entry }}
# {{ . }}
{{- end }}
{{- else }}
{{ $entry }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "lamina.extenderEntry" -}}
- urlPrefix: {{ .url }}
{{- if .filters }}
  filterVerb: predicates/{{ .verb }}
  preemptVerb: preemption/{{ .verb }}
{{- end }}
  prioritizeVerb: priorities/{{ .verb }}
  weight: {{ .weight }}
  nodeCacheCapable: true
  httpTimeout: {{ if .filters }}2s{{ else }}1s{{ end }}
{{- if .filters }}
  # Not ignorable: while the extender is down, pods wait. An extender that has just started and is not synced yet does
  # answer, and lets all nodes pass.
  ignorable: false
{{- else }}
  # While the extender is down, pods are placed without it.
  ignorable: true
{{- end }}
{{- if .separate }}
  enableHTTPS: true
  tlsConfig:
    caFile: /etc/lamina-tls/ca.crt
    certFile: /etc/lamina-tls/tls.crt
    keyFile: /etc/lamina-tls/tls.key
{{- end }}
{{- end }}

{{/* The extender's own configuration. */}}
{{- define "lamina.extenderConfiguration" -}}
{{- $extender := .Values.extender -}}
apiVersion: lamina.dev/v1alpha1
kind: ExtenderConfiguration
{{- if eq $extender.mode "separate" }}
listen: 0.0.0.0:{{ $extender.port }}
# For probes and Prometheus, which have no client certificate: metrics, but no scheduling requests.
pages: 0.0.0.0:{{ $extender.pages }}
tls:
  certFile: /etc/lamina-tls/tls.crt
  keyFile: /etc/lamina-tls/tls.key
  clientCAFile: /etc/lamina-tls/ca.crt
  clientNames: [lamina-kube-scheduler]
{{- else }}
listen: 127.0.0.1:{{ $extender.port }}
# For probes and Prometheus, which connect from outside the pod: metrics, but no scheduling requests.
pages: 0.0.0.0:{{ $extender.pages }}
{{- end }}
agents:
{{- range $extender.agents }}
- name: {{ . }}
{{- end }}
schedulerNames: [my-scheduler]
# true: the extender looks up images in registries that nodes have pulled from.
registries: {{ $extender.registries }}
{{- if $extender.usage }}
usage:
  {{- toYaml $extender.usage | nindent 2 }}
{{- else if has "safe" $extender.agents }}
# Without a source, `safe` reads annotations; docs/scheduling-agents-data.md.
# usage:
#   prometheus: {url: http://prometheus.monitoring:9090}
{{- end }}
{{- end }}

{{/* A container of the extender; the argument has the keys root, process and beside (whether it runs in the scheduler's pod). */}}
{{- define "lamina.extenderContainer" -}}
{{- $values := .root.Values.extender -}}
{{- $perAgent := eq $values.mode "process-per-agent" -}}
- name: {{ .process.name }}
{{- if .beside }}
  restartPolicy: Always
{{- end }}
  # A placeholder: set it to an image that you have built and pushed, best by digest.
  {{- include "lamina.image" .root | nindent 2 }}
  args:
  - extender
  {{- if $perAgent }}
  - --agents={{ join "," .process.agents }}
  # For probes and Prometheus, which connect from outside the pod: metrics, but no scheduling requests.
  - --pages=0.0.0.0:{{ .process.pages }}
  - --scheduler-name=my-scheduler
  {{- if not $values.registries }}
  - --no-registries
  {{- end }}
  {{- else }}
  - --config=/etc/lamina/extender.yaml
  {{- end }}
  - --log-format=json
  {{- with $values.extraArgs }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- $more := list }}
  {{- if $perAgent }}
  {{- $more = list (dict "name" "HTTP_PORT" "value" (toString .process.port)) (dict "name" "LOG_LEVEL" "value" "INFO") }}
  {{- end }}
  {{- with include "lamina.env" (dict "root" .root "more" $more) }}{{ trim . | nindent 2 }}{{ end }}
  ports:
  {{- if not .beside }}
  - name: extender
    containerPort: {{ .process.port }}
  {{- end }}
  - name: {{ .process.portName }}
    containerPort: {{ .process.pages }}
  startupProbe:
    httpGet:
      path: {{ if .beside }}/readyz{{ else }}/livez{{ end }}
      port: {{ .process.portName }}
    periodSeconds: 2
    timeoutSeconds: 5
    failureThreshold: {{ if .beside }}150{{ else }}30{{ end }}
  livenessProbe:
    httpGet:
      path: /livez
      port: {{ .process.portName }}
    periodSeconds: 20
    timeoutSeconds: 5
    failureThreshold: 3
  readinessProbe:
    httpGet:
      path: /readyz
      port: {{ .process.portName }}
    periodSeconds: 10
    timeoutSeconds: 5
  resources:
    {{- toYaml $values.resources | nindent 4 }}
  securityContext:
    {{- include "lamina.confined" .root | nindent 4 }}
  {{- if not $perAgent }}
  volumeMounts:
  - name: configuration
    mountPath: /etc/lamina
    readOnly: true
  {{- if not .beside }}
  - name: tls
    mountPath: /etc/lamina-tls
    readOnly: true
  {{- end }}
  {{- end }}
{{- end }}

{{/* Labels of a part beside the scheduler; the argument is the name of the component. */}}
{{- define "lamina.partLabels" -}}
app.kubernetes.io/name: lamina
app.kubernetes.io/component: {{ . }}
app.kubernetes.io/part-of: lamina
{{- end }}

{{/* What the pods of both Deployments have; the argument has the keys root, component, account and key (whether it reads a key). */}}
{{- define "lamina.extenderPod" -}}
serviceAccountName: {{ .account }}
# Not itself: another scheduler has to place this one.
schedulerName: default-scheduler
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  {{- if .key }}
  # Lets the process read the key.
  fsGroup: 65532
  {{- end }}
  {{- with include "lamina.seccomp" .root }}{{ trim . | nindent 2 }}{{ end }}
{{- with include "lamina.podSettings" (dict "root" .root "part" .root.Values.extender) }}{{ trim . | nindent 0 }}{{ end }}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      app.kubernetes.io/name: lamina
      app.kubernetes.io/component: {{ .component }}
{{- end }}
