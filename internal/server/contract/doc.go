// Package contract proves that programs made from schemas/openapi.yaml, and the
// agents in examples/, work against a running API. It holds tests alone and no
// rules of its own.
package contract
