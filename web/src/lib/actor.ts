// personOf returns the name of an actor without the ids behind it: "ada's laptop (operator 0198…, token 0198…)" is
// ada's laptop. The name is free text from outside.
export function personOf(actor: string): string {
  const at = actor.lastIndexOf(' (')
  return at > 0 && /\((?:operator|token) [^()]*\)$/.test(actor) ? actor.slice(0, at) : actor
}
