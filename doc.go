// Package countersign holds no code: the contract is in package envelope, the
// programs are under cmd. What every package must keep to is tested here.
package countersign
