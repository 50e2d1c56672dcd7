{{- define "notebox.name" -}}
{{- if contains "notebox" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-notebox" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "notebox.selector" -}}
app.kubernetes.io/name: notebox
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "notebox.labels" -}}
{{ include "notebox.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "notebox.sandboxes" -}}
{{ .Values.sandboxes.namespace | default (printf "%s-sandboxes" (include "notebox.name" .)) }}
{{- end }}

{{- define "notebox.several" -}}
{{- if or (gt (int .Values.replicas) 1) .Values.autoscaling.enabled .Values.keda.enabled }}yes{{ end }}
{{- end }}

{{/* What cannot be meant, or wants the operator's word. */}}
{{- define "notebox.check" -}}
{{- $v := .Values }}
{{- if not $v.image }}
{{- fail "image: name the service's image, as registry.example.org/notebox/service:1.0" }}
{{- end }}
{{- if not (or $v.apiKeys.existingSecret $v.apiKeys.none) }}
{{- fail "apiKeys.existingSecret: name a Secret with the lines of `notebox key`, or set apiKeys.none: true to let everybody in" }}
{{- end }}
{{- if and $v.apiKeys.existingSecret $v.apiKeys.none }}
{{- fail "apiKeys: existingSecret and none exclude each other" }}
{{- end }}
{{- if eq $v.engine "sidecar" }}
{{- if not $v.languages.jupyter }}
{{- fail "languages.jupyter.image: name Python's image, which `notebox image` prints" }}
{{- end }}
{{- if not (or (eq $v.worker.privileges "accept") $v.worker.userNamespaces) }}
{{- fail (printf `

worker.privileges: the containers in which code runs (%s) get on the node
  - the capability SYS_ADMIN, to mount a /proc of their own and to write to their own control
    groups. They give it up before they listen, and before any code runs.
  - the capabilities SETUID and SETGID, to give each cell user ids of its own. They keep these.
  - no seccomp and no AppArmor profile of the runtime's, which forbid the namespaces that are a
    cell's walls. Each cell has notebox's own seccomp filter instead.
The service's container gets none of that. If you accept it: --set worker.privileges=accept
Otherwise: worker.userNamespaces=true if your nodes have them, or engine=kubernetes, which needs
none of that. docs/kubernetes.md has more.
` (keys $v.languages | sortAlpha | join ", ")) }}
{{- end }}
{{- end }}
{{- if include "notebox.several" . }}
{{- if or (hasPrefix "file:" $v.storage.url) (hasPrefix "mem:" $v.storage.url) }}
{{- fail "storage.url: several pods need a store that all of them reach: s3://, azblob:// or gs://" }}
{{- end }}
{{- if not $v.linkKeys.existingSecret }}
{{- fail "linkKeys.existingSecret: several pods sign links with the same secrets: name a Secret that has them" }}
{{- end }}
{{- if not $v.peers.existingSecret }}
{{- fail "peers.existingSecret: several pods pass calls for a session on to the pod that has it, and know each other by a secret: name a Secret whose key peer-secret has at least 32 bytes" }}
{{- end }}
{{- end }}
{{- if and $v.autoscaling.enabled $v.keda.enabled }}
{{- fail "autoscaling and keda: only one may set the number of pods" }}
{{- end }}
{{- end }}

{{/* A flag's value, as a variable has it. Helm reads large numbers as floating point. */}}
{{- define "notebox.text" -}}
{{- if kindIs "float64" . }}{{ if eq (float64 (int64 .)) . }}{{ int64 . }}{{ else }}{{ . }}{{ end }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{- define "notebox.env" -}}
{{- $v := .Values }}
{{- $all := dict
  "listen" "0.0.0.0:8080"
  "engine" $v.engine
  "dependencies" "off"
  "state-dir" "/var/lib/notebox/state"
  "storage" $v.storage.url
  "drain" (printf "%ds" (int $v.end.drainSeconds))
  "first-key" "false"
  "api-keys-file" "" }}
{{- if $v.apiKeys.none }}{{ $_ := set $all "no-auth" "true" }}{{ else }}{{ $_ := set $all "api-keys-file" "/etc/notebox/api-keys/api-keys" }}{{ end }}
{{- if $v.linkKeys.existingSecret }}{{ $_ := set $all "link-keys" "/etc/notebox/link-keys/link-keys" }}{{ end }}
{{- if $v.peers.existingSecret }}
{{- $_ := set $all "peers" (printf "%s-pods:8080" (include "notebox.name" .)) }}
{{- $_ := set $all "peer-secret" "/etc/notebox/peers/peer-secret" }}
{{- end }}
{{- if eq $v.engine "kubernetes" }}
{{- $_ := set $all "kubernetes-namespace" (include "notebox.sandboxes" .) }}
{{- $_ := set $all "probe-every" "5m" }}{{/* each probe takes a pod */}}
{{- if $v.sandboxes.runtimeClass }}{{ $_ := set $all "kubernetes-runtime-class" $v.sandboxes.runtimeClass }}{{ end }}
{{- if $v.sandboxes.registry }}{{ $_ := set $all "kubernetes-registry" $v.sandboxes.registry }}{{ end }}
{{- end }}
{{- $pool := list }}
{{- range $language, $number := $v.pool }}{{ $pool = append $pool (printf "%s=%d" $language (int $number)) }}{{ end }}
{{- if $pool }}{{ $_ := set $all "pool-size" (join "," $pool) }}{{ end }}
{{- range $flag, $value := merge (deepCopy $v.settings) $all }}
- name: NOTEBOX_{{ $flag | upper | replace "-" "_" }}
  value: {{ include "notebox.text" $value | quote }}
{{- end }}
{{- if $v.peers.existingSecret }}
- name: POD_IP # where peers find this pod
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
{{- end }}
{{- with $v.limits.redis.existingSecret }}
- name: NOTEBOX_LIMITS
  valueFrom: {secretKeyRef: {name: {{ . }}, key: url}}
{{- end }}
{{- with $v.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The container of one language. */}}
{{- define "notebox.worker" -}}
{{- $v := .Values }}
- name: {{ .name }}
  image: {{ required (printf "languages.%s.image: name the image, which `notebox image` prints" .name) .language.image | quote }}
  imagePullPolicy: {{ $v.imagePullPolicy }}
  restartPolicy: Always # with the service, and before it
  command: [/opt/notebox/supervisor, listen, /run/workers/{{ .name }}.sock]
  workingDir: /
  env:
    - {name: HOME, value: /run/notebox}
  startupProbe:
    exec:
      command: [test, -S, /run/workers/{{ .name }}.sock]
    periodSeconds: 1
    failureThreshold: 60
  resources:
    {{- toYaml (.language.resources | default $v.worker.resources) | nindent 4 }}
  securityContext:
    runAsNonRoot: false
    runAsUser: 0
    runAsGroup: 0
    readOnlyRootFilesystem: true
    allowPrivilegeEscalation: true # Kubernetes wants it beside SYS_ADMIN; the listener ends it
    capabilities:
      drop: [ALL]
      add: [SETGID, SETUID, SYS_ADMIN]
    seccompProfile: {type: Unconfined} # the runtime's own forbids a cell's namespaces
    appArmorProfile: {type: Unconfined}
    {{- if $v.worker.userNamespaces }}
    procMount: Unmasked # or the kernel lets no cell mount a /proc
    {{- end }}
  volumeMounts:
    - {name: workers, mountPath: /run/workers}
    - {name: tmp-{{ .name }}, mountPath: /tmp}
    - {name: data-{{ .name }}, mountPath: /mnt/data}
    - {name: home-{{ .name }}, mountPath: /run/notebox}
{{- end }}
