{{/*
All objects in the release's namespace are called dtj-operator. The operator's Lease and Secret have fixed names, so a
namespace can hold one install only; with fixed names Helm refuses a second one there, and says why.
*/}}
{{- define "dtj.name" -}}
dtj-operator
{{- end }}

{{/* For objects outside that namespace, of which several installs may have one each. */}}
{{- define "dtj.clusterName" -}}
{{ include "dtj.name" . }}-{{ .Release.Namespace }}
{{- end }}

{{- define "dtj.labels" -}}
{{ include "dtj.selector" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Without the release's name: jobs' network policies carry these labels, and must go on holding. */}}
{{- define "dtj.selector" -}}
app.kubernetes.io/name: dtj-operator
app.kubernetes.io/component: operator
{{- end }}

{{- define "dtj.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "dtj.name" .) | quote }}
{{- end }}

{{- define "dtj.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "dtj.podSecurity" -}}
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "dtj.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* What the operator asks of the API for jobs; each verb has a call in dtj_operator/kube, and is seen in an audit log. */}}
{{- define "dtj.jobRules" -}}
- apiGroups: [dtj.dev]
  resources: [distributedtrainingjobs]
  verbs: [get, list, watch, delete]
- apiGroups: [dtj.dev]
  resources: [distributedtrainingjobs/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, create, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, create, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, create, delete]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, list, create]
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end }}

{{/* The version of the definition that is in the cluster, if this chart's is older, and is asked for at all. */}}
{{- define "dtj.newerDefinition" -}}
{{- if .Values.crds.enabled }}
{{- with lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "distributedtrainingjobs.dtj.dev" }}
{{- with dig "metadata" "annotations" "dtj.dev/version" "" . }}
{{- if gt ((semver .).Compare (semver $.Chart.AppVersion)) 0 }}{{ . }}{{ end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
