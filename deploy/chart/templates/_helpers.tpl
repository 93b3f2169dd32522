{{- define "pellucid.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pellucid.labels" -}}
{{ include "pellucid.selectorLabels" . }}
app.kubernetes.io/component: scheduler
{{- end }}

{{- define "pellucid.metadata" -}}
name: {{ .Release.Name }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "pellucid.labels" . | nindent 2 }}
{{- end }}

{{- define "pellucid.serviceAccount" -}}
{{ .Values.serviceAccount.existing | default .Release.Name }}
{{- end }}
