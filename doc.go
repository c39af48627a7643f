// Package countersign holds no code: the contract is in package envelope, the
// programs are under cmd, and the rules of the sources in internal/dev/rules.
package countersign
