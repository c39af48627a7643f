// Package contract proves that programs made from schemas/openapi.yaml, and the
// agents in examples/, work against a running API. It has only tests.
package contract
