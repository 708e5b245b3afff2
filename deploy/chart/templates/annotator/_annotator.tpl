{{/* One annotator; the argument has the keys root, what and configured (whether it reads the sources). */}}
{{- define "lamina.annotator" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: lamina-annotate-{{ .what }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    app.kubernetes.io/name: lamina
    app.kubernetes.io/component: annotator
    app.kubernetes.io/part-of: lamina
    {{- with include "lamina.commonLabels" .root }}{{ trim . | nindent 4 }}{{ end }}
spec:
  replicas: 1
  strategy:
    type: Recreate
  selector:
    matchLabels:
      app.kubernetes.io/name: lamina
      app.kubernetes.io/component: annotator
      lamina.dev/annotates: {{ .what }}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: lamina
        app.kubernetes.io/component: annotator
        app.kubernetes.io/part-of: lamina
        lamina.dev/annotates: {{ .what }}
    spec:
      serviceAccountName: lamina-annotator
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        {{- with include "lamina.seccomp" .root }}{{ trim . | nindent 8 }}{{ end }}
      {{- with include "lamina.podSettings" (dict "root" .root "part" .root.Values.annotators) }}{{ trim . | nindent 6 }}{{ end }}
      containers:
      - name: annotator
        # A placeholder: set it to an image that you have built and pushed, best by digest.
        {{- include "lamina.image" .root | nindent 8 }}
        args:
        - annotate
        - {{ .what }}
        {{- if .configured }}
        - --config=/etc/lamina/usage.yaml
        {{- end }}
        - --log-format=json
        {{- with include "lamina.env" (dict "root" .root) }}{{ trim . | nindent 8 }}{{ end }}
        resources:
          {{- toYaml .root.Values.annotators.resources | nindent 10 }}
        securityContext:
          {{- include "lamina.confined" .root | nindent 10 }}
        {{- if .configured }}
        volumeMounts:
        - name: configuration
          mountPath: /etc/lamina
          readOnly: true
      volumes:
      - name: configuration
        configMap:
          name: lamina-usage
        {{- end }}
{{- end }}
