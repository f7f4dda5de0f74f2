{{- define "kith.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "kith.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kith.labels" -}}
{{ include "kith.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The first three nodes are the contact points, in one order for all, whatever the number of nodes. */}}
{{- define "kith.seeds" -}}
{{- $full := include "kith.fullname" . }}
{{- $seeds := list }}
{{- range $i := until (int (min 3 .Values.replicas)) }}
{{- $seeds = append $seeds (printf "%s-%d.%s:7355" $full $i $full) }}
{{- end }}
{{- join "," $seeds }}
{{- end }}
