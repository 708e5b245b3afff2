{{/*
The objects have fixed names: the custom resources, the admission policies and the lease exist once in a cluster, so there is
one installation in a cluster.
*/}}

{{/* Labels that the operator adds to every object. */}}
{{- define "lamina.commonLabels" -}}
{{- with .Values.commonLabels }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* The two lines that name Lamina's image in a container. */}}
{{- define "lamina.image" -}}
{{- $image := .Values.image -}}
{{- $repository := required "set image.repository: no image is published; `make image` builds one" $image.repository -}}
{{- if $image.digest -}}
image: {{ $repository }}@{{ $image.digest }}
{{- else -}}
image: {{ $repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end }}
{{- with $image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end }}

{{/* Environment variables of a container of Lamina's; the argument has the keys root and more (a list). */}}
{{- define "lamina.env" -}}
{{- $env := .more | default list -}}
{{- with .root.Values.apiServer.host }}
{{- $env = append $env (dict "name" "KUBERNETES_SERVICE_HOST" "value" (toString .)) -}}
{{- end }}
{{- with .root.Values.apiServer.port }}
{{- $env = append $env (dict "name" "KUBERNETES_SERVICE_PORT" "value" (toString .)) -}}
{{- end }}
{{- with $env }}
env:
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What an operator adds to the pods of a part; the argument has the keys root and part (the part's values). */}}
{{- define "lamina.podSettings" -}}
{{- if .part.hostNetwork }}
hostNetwork: true
{{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
{{ toYaml . }}
{{- end }}
{{- with .part.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .part.nodeSelector }}
nodeSelector:
{{ toYaml . | indent 2 }}
{{- end }}
{{- with .part.affinity }}
affinity:
{{ toYaml . | indent 2 }}
{{- end }}
{{- with .part.tolerations }}
tolerations:
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The profile of system calls. */}}
{{- define "lamina.seccomp" -}}
{{- with .Values.seccompProfile }}
seccompProfile:
  type: {{ . }}
{{- end }}
{{- end }}

{{/* Security of a container without any right. */}}
{{- define "lamina.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Whether any annotator is on; empty means no. */}}
{{- define "lamina.annotates" -}}
{{- range $name := list "usage" "allocation" "congestion" }}{{ if (get $.Values.annotators $name).enabled }}{{ $name }}{{ end }}{{ end -}}
{{- end }}

{{/* Where the socket of the runtime is. */}}
{{- define "lamina.socket" -}}
{{- $usual := dict "containerd" "/run/containerd/containerd.sock" "k3s" "/run/k3s/containerd/containerd.sock" "rke2" "/run/k3s/containerd/containerd.sock" "k0s" "/run/k0s/containerd.sock" "microk8s" "/var/snap/microk8s/common/run/containerd.sock" -}}
{{- .Values.nodeAgent.socket | default (get $usual .Values.nodeAgent.runtime) -}}
{{- end }}

{{/* The folder that is mounted for it. */}}
{{- define "lamina.socketFolder" -}}
{{- .Values.nodeAgent.socketFolder | default (include "lamina.socket" . | dir) -}}
{{- end }}
