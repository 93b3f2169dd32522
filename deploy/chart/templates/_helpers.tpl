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

{{- define "pellucid.webhookLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}-webhook
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Address and port; an IPv6 address is in brackets. */ -}}
{{- define "pellucid.socketAddress" -}}
{{- $address := .bindAddress | default "::" -}}
{{ if contains ":" $address }}[{{ $address }}]{{ else }}{{ $address }}{{ end }}:{{ .port }}
{{- end }}

{{- define "pellucid.webhookCall" -}}
clientConfig:
  service:
    namespace: {{ .root.Release.Namespace }}
    name: {{ .root.Release.Name }}-webhook
    path: {{ .path }}
  {{- with .root.Values.webhook.caBundle }}
  caBundle: {{ . }}
  {{- end }}
admissionReviewVersions: [v1]
sideEffects: None
failurePolicy: {{ .policy }}
matchPolicy: Equivalent
timeoutSeconds: {{ .root.Values.webhook.timeoutSeconds }}
{{- end }}
