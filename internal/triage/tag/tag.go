// Package tag owns action tags: what their owner sets on a message so that a
// tool is called with data of it. It holds the registry of actions, the states of
// a tag, and the extraction of arguments. It reads no mailbox and no database,
// and proposes nothing.
package tag
