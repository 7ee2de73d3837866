{{- define "cortado.name" -}}
{{- if contains "cortado" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-cortado" (.Release.Name | trunc 40 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "cortado.selector" -}}
app.kubernetes.io/name: cortado
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "cortado.labels" -}}
{{ include "cortado.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "cortado.image" -}}
{{ .Values.image.name }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The name under which the others find a pod, whether it is ready or not. */}}
{{- define "cortado.domain" -}}
{{ include "cortado.name" . }}-peers.{{ .Release.Namespace }}.svc
{{- end }}

{{/* Each node that the cluster is to have, ID=ADDRESS of its peers, but for the first. */}}
{{- define "cortado.grown" -}}
{{- $all := . }}
{{- range $i := untilStep 1 (int .Values.replicas) 1 }}
{{- $pod := printf "%s-%d" (include "cortado.name" $all) $i }}
- {{ printf "%s=%s.%s:7622" (get $all.Values.nodeIds $pod | default $pod) $pod (include "cortado.domain" $all) | quote }}
{{- end }}
{{- end }}

{{- define "cortado.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 7621
  runAsGroup: 7621
  fsGroup: 7621
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "cortado.container" -}}
image: {{ include "cortado.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* How the command line reaches the nodes, of which one that answers is enough. */}}
{{- define "cortado.client" -}}
{{- $all := . }}
{{- $addresses := list }}
{{- range $i := until (int .Values.replicas) }}
{{- $addresses = append $addresses (printf "%s-%d.%s:7621" (include "cortado.name" $all) $i (include "cortado.domain" $all)) }}
{{- end }}
env:
  - {name: CORTADO_ENDPOINTS, value: {{ join "," $addresses | quote }}}
  {{- if .Values.tls.secretName }}
  - {name: CORTADO_TLS_CA, value: /etc/cortado-tls/ca.crt}
  - {name: CORTADO_TLS_CERT, value: /etc/cortado-tls/client.crt}
  - {name: CORTADO_TLS_KEY, value: /etc/cortado-tls/client.key}
  {{- end }}
{{- end }}

{{/* What a client needs of the secret: the keys of nodes are for nodes. */}}
{{- define "cortado.clientTls" -}}
{name: tls, secret: {secretName: {{ .Values.tls.secretName }}, defaultMode: 0440, items: [
  {key: ca.crt, path: ca.crt}, {key: client.crt, path: client.crt}, {key: client.key, path: client.key}]}}
{{- end }}

{{- define "cortado.tls" -}}
{name: tls, secret: {secretName: {{ .Values.tls.secretName }}, defaultMode: 0440}}
{{- end }}
