{{- define "lockstep.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- /* Empty if the fleet manager finds it by the tag of its own image. */}}
{{- define "lockstep.sidecarImage" -}}
{{- if .Values.image.sidecarDigest -}}
{{ .Values.image.repository }}-sidecar@{{ .Values.image.sidecarDigest }}
{{- else if .Values.image.digest -}}
{{ .Values.image.repository }}-sidecar:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}
