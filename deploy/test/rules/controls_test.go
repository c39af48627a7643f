package rules_test

import "github.com/countersign-dev/countersign/deploy/test/rendered/renderedtest"

// on returns a control of an object of the base.
func on(target, patch, want string) renderedtest.Control {
	return renderedtest.Control{Target: target, Patch: patch, Want: want}
}

// adding returns a control that adds an object to the base.
func adding(object, want string) renderedtest.Control {
	return renderedtest.Control{Patch: object, Want: want}
}

const (
	api     = "Deployment/countersign-api"
	worker  = "Deployment/countersign-worker"
	model   = "Deployment/countersign-model"
	doctor  = "CronJob/countersign-doctor"
	cluster = "Cluster/countersign-db"
	migrate = "Job/countersign-migrate-v0-1-0"
	// scaler is a ScaledObject without its end.
	scaler = `{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "extra"}, "spec": {"scaleTargetRef": {"name": "countersign-worker"}`
	// autoscaler is a HorizontalPodAutoscaler without its end.
	autoscaler = `{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "extra"}, "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "countersign-worker"}`
)

// controls returns the expected findings of each rule.
func controls() map[string][]renderedtest.Control {
	return map[string][]renderedtest.Control{
		"connections fit the database": {
			on(worker, `[{"op": "add", "path": "/spec/replicas", "value": 40}]`, "countersign-worker 41 × 22"),
			adding(autoscaler+`, "maxReplicas": 30}}`, "countersign-worker 31 × 22"),
			adding(scaler+`, "minReplicaCount": 1, "maxReplicaCount": 50, "triggers": [{"type": "postgresql"}]}}`, "ScaledObject/extra 1"),
			on(worker, `[{"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "COUNTERSIGN_DB_MAX_CONNS", "value": "400"}}]`, "2 × 402"),
		},
		"commits wait for a standby": {
			{With: "cloudnative-pg", Target: cluster, Patch: `[{"op": "replace", "path": "/spec/postgresql/synchronous/dataDurability", "value": "preferred"}]`, Want: "waits for any 1 (preferred)"},
			{With: "cloudnative-pg", Target: cluster, Patch: `[{"op": "remove", "path": "/spec/postgresql/synchronous"}]`, Want: "waits for  0 ()"},
			{With: "cloudnative-pg", Target: cluster, Patch: `[{"op": "replace", "path": "/spec/instances", "value": 2}]`, Want: "has 2 instances"},
		},
		"a stop ends before the kill": {
			on(worker, `[{"op": "replace", "path": "/spec/template/spec/terminationGracePeriodSeconds", "value": 60}]`, "killed after 1m0s"),
			on(worker, `[{"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "COUNTERSIGN_GRACE", "value": "10m"}}]`, "may take 10m"),
			on(api, `[{"op": "remove", "path": "/spec/template/spec/terminationGracePeriodSeconds"}, {"op": "add", "path": "/spec/template/spec/containers/0/lifecycle", "value": {"preStop": {"sleep": {"seconds": 20}}}}]`, "killed after 30s"),
		},
		"memory limits stand above Go's": {
			on(api, `[{"op": "replace", "path": "/spec/template/spec/containers/0/resources/limits/memory", "value": "460Mi"}]`, "leaves less than a twentieth"),
			on(doctor, `[{"op": "remove", "path": "/spec/jobTemplate/spec/template/spec/containers/0/env"}]`, "no GOMEMLIMIT"),
		},
		"variables are those of the program": {
			on(api, `[{"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "COUNTERSIGN_GRACE", "value": "45s"}}]`, "sets COUNTERSIGN_GRACE, which the help of api does not name"),
			on(worker, `[{"op": "replace", "path": "/spec/template/spec/containers/0/envFrom/0/configMapRef/name", "value": "gone"}]`, "no ConfigMap gone"),
			on(doctor, `[{"op": "add", "path": "/spec/jobTemplate/spec/template/spec/containers/0/env/-", "value": {"name": "COUNTERSIGN_LISTEN", "value": ":1"}}]`, "sets COUNTERSIGN_LISTEN"),
		},
		"required variables are set": {
			on(worker, `[{"op": "replace", "path": "/spec/template/spec/containers/0/env", "value": []}]`, "does not set DATABASE_URL"),
			on(worker, `[{"op": "replace", "path": "/spec/template/spec/containers/0/envFrom", "value": []}]`, `COUNTERSIGN_METRICS_LISTEN=""`),
			on(api, `[{"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "COUNTERSIGN_LISTEN", "value": "127.0.0.1:8080"}}]`, "which no probe reaches"),
		},
		"secrets go to their workload alone": {
			on(api, `[{"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "DATABASE_URL", "valueFrom": {"secretKeyRef": {"name": "countersign-owner", "key": "DATABASE_URL"}}}}]`, "the Secret countersign-owner, which is for [migrate]"),
			on(worker, `[{"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "COUNTERSIGN_TRIAGE_KEY", "valueFrom": {"secretKeyRef": {"name": "countersign-keys", "key": "COUNTERSIGN_TRIAGE_KEY"}}}}]`, "COUNTERSIGN_TRIAGE_KEY"),
			on(api, `[{"op": "add", "path": "/spec/template/spec/containers/0/envFrom/-", "value": {"secretRef": {"name": "countersign-owner"}}}]`, "every variable of countersign-owner"),
			on(api, `[{"op": "add", "path": "/spec/template/spec/volumes", "value": [{"name": "x", "secret": {"secretName": "countersign-owner"}}]}]`, "mounts the Secret"),
		},
		"an autoscaler alone sets replicas": {
			{With: "hpa", Target: worker, Patch: `[{"op": "add", "path": "/spec/replicas", "value": 2}]`, Want: "has replicas too"},
			{With: "hpa", Target: "HorizontalPodAutoscaler/countersign-worker", Patch: `[{"op": "replace", "path": "/spec/scaleTargetRef/name", "value": "workers"}]`, Want: "no Deployment workers"},
		},
		"one autoscaler for a Deployment": {
			{With: "hpa", Patch: scaler + `}}`, Want: "both scale Deployment/countersign-worker"},
		},
		"workers are never scaled to zero": {
			adding(scaler+`, "minReplicaCount": 0}}`, "to zero"),
		},
		"pods of Jobs stand apart": {
			on(doctor, `[{"op": "replace", "path": "/spec/jobTemplate/spec/template/metadata/labels/app.kubernetes.io~1component", "value": "worker"}]`, "PodDisruptionBudget/countersign-worker selects the pods of CronJob/countersign-doctor"),
			on(migrate, `[{"op": "replace", "path": "/spec/template/metadata/labels/app.kubernetes.io~1component", "value": "api"}]`, "Service/countersign-api selects the pods of "+migrate),
		},
		"budgets let a node be drained": {
			on("PodDisruptionBudget/countersign-api", `[{"op": "remove", "path": "/spec/maxUnavailable"}, {"op": "add", "path": "/spec/minAvailable", "value": 1}]`, "never lets a pod go"),
			on("PodDisruptionBudget/countersign-api", `[{"op": "replace", "path": "/spec/maxUnavailable", "value": 0}]`, "never lets a pod go"),
			on("PodDisruptionBudget/countersign-api", `[{"op": "remove", "path": "/spec/unhealthyPodEvictionPolicy"}]`, "not ready on their node"),
			on("PodDisruptionBudget/countersign-api", `[{"op": "replace", "path": "/spec/selector/matchLabels/app.kubernetes.io~1component", "value": "apis"}]`, "pods of 0 workloads"),
			{With: "hpa", Target: "PodDisruptionBudget/countersign-worker", Patch: `[{"op": "replace", "path": "/kind", "value": "Gone"}]`, Want: "Deployment/countersign-worker has several replicas and no"},
		},
		"Services reach a port": {
			on("Service/countersign-api", `[{"op": "replace", "path": "/spec/ports/0/targetPort", "value": "https"}]`, "has no port https"),
			on("Service/countersign-api", `[{"op": "replace", "path": "/spec/selector/app.kubernetes.io~1component", "value": "apis"}]`, "pods of 0 workloads"),
		},
		"monitors reach a port": {
			{With: "monitors", Target: "PodMonitor/countersign", Patch: `[{"op": "replace", "path": "/spec/podMetricsEndpoints/0/port", "value": "metric"}]`, Want: `no port "metric"`},
			{With: "monitors", Target: "PodMonitor/countersign", Patch: `[{"op": "replace", "path": "/spec/selector/matchLabels", "value": {"app.kubernetes.io/name": "countersing"}}]`, Want: "selects nothing"},
		},
		"policies select a workload": {
			on("NetworkPolicy/countersign-api-internet", `[{"op": "replace", "path": "/spec/podSelector/matchLabels/app.kubernetes.io~1component", "value": "apis"}]`, "selects no pod"),
			on("NetworkPolicy/countersign-audit-verify-api", `[{"op": "replace", "path": "/spec/egress/0/to/0/podSelector/matchLabels/app.kubernetes.io~1component", "value": "apis"}]`, `names the component "apis"`),
			on("NetworkPolicy/countersign-dns", `[{"op": "replace", "path": "/spec/podSelector/matchExpressions/1/values/0", "value": "apis"}]`, `names the component "apis"`),
		},
		"every pod is restricted": {
			on(api, `[{"op": "remove", "path": "/spec/template/spec/securityContext"}]`, "runAsNonRoot != true"),
			on(migrate, `[{"op": "remove", "path": "/spec/template/spec/containers/0/securityContext/capabilities"}]`, "unrestricted capabilities"),
			on(doctor, `[{"op": "add", "path": "/spec/jobTemplate/spec/template/spec/hostNetwork", "value": true}]`, "host namespaces"),
		},
		"containers are confined": {
			on(api, `[{"op": "remove", "path": "/spec/template/spec/automountServiceAccountToken"}]`, "gets a token"),
			on(api, `[{"op": "add", "path": "/spec/template/spec/volumes", "value": [{"name": "account", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]}]`, "gets a token"),
			on(api, `[{"op": "replace", "path": "/spec/template/spec/enableServiceLinks", "value": true}]`, "variables of every Service"),
			on(worker, `[{"op": "remove", "path": "/spec/template/spec/containers/0/securityContext/readOnlyRootFilesystem"}]`, "can write its root"),
			on(worker, `[{"op": "remove", "path": "/spec/template/spec/containers/0/resources/limits"}]`, "no limit of memory"),
		},
		"probes ask a port that listens": {
			on(worker, `[{"op": "replace", "path": "/spec/template/spec/containers/0/readinessProbe/httpGet/port", "value": "http"}]`, "readiness probe asks port http"),
			on(worker, `[{"op": "remove", "path": "/spec/template/spec/containers/0/livenessProbe"}]`, "no liveness probe"),
			on(api, `[{"op": "replace", "path": "/spec/template/spec/containers/0/livenessProbe/httpGet/path", "value": "/readyz"}]`, "killed when it is not ready"),
		},
		"replicas spread over zones and nodes": {
			{With: "hpa", Target: api, Patch: `[{"op": "remove", "path": "/spec/template/spec/topologySpreadConstraints/0"}]`, Want: "topology.kubernetes.io/zone"},
			{With: "hpa", Target: api, Patch: `[{"op": "replace", "path": "/spec/template/spec/topologySpreadConstraints/1/labelSelector/matchLabels/app.kubernetes.io~1component", "value": "worker"}]`, Want: "kubernetes.io/hostname"},
		},
		"CronJobs do not overlap": {
			on(doctor, `[{"op": "remove", "path": "/spec/concurrencyPolicy"}]`, "not Forbid"),
			on(doctor, `[{"op": "remove", "path": "/spec/timeZone"}]`, "no timeZone"),
			on(doctor, `[{"op": "remove", "path": "/spec/startingDeadlineSeconds"}]`, "no startingDeadlineSeconds"),
			on(doctor, `[{"op": "remove", "path": "/spec/jobTemplate/spec/activeDeadlineSeconds"}]`, "no activeDeadlineSeconds"),
		},
		"the Job of the migration has the version": {
			on(migrate, `[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "countersign:v0.2.0"}]`, `version "v0.2.0"`),
			on(migrate, `[{"op": "replace", "path": "/spec/ttlSecondsAfterFinished", "value": 0}]`, "gone within the hour"),
		},
		"model servers stand apart": {
			on(worker, `[{"op": "add", "path": "/spec/template/spec/initContainers", "value": [{"name": "model", "image": "llama.cpp", "restartPolicy": "Always"}]}]`, "container model is of others"),
			{With: "model-service", Target: "NetworkPolicy/countersign-dns", Patch: `[{"op": "add", "path": "/spec/podSelector/matchExpressions/1/values/-", "value": "model"}]`, Want: "countersign-dns lets Deployment/countersign-model out"},
		},
		"model servers are pinned by digest": {
			{With: "model-service", Target: model, Patch: `[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "ghcr.io/ggml-org/llama.cpp:server"}]`, Want: "llama.cpp:server has no digest"},
			{With: "model-service", Target: model, Patch: `[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "model-server"}]`, Want: "model-server has no digest"},
		},
		"images have one version": {
			on(worker, `[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "registry.example/countersign:v0.2.0"}]`, "images of several versions"),
			on(worker, `[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "countersign"}]`, "has no version"),
			on(worker, `[{"op": "remove", "path": "/spec/template/metadata/labels/app.kubernetes.io~1version"}]`, `the label of the version is ""`),
		},
	}
}
