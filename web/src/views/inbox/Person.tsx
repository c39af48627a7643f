import { shown } from '../../lib/text'

// Person shows who did something: by name, and by the ids behind it on pointing. A name is free text; the ids are not.
export function Person({ actor }: { actor: string }) {
  const name = actor.replace(/ \((?:operator [0-9a-f-]{36})?(?:, )?(?:token [0-9a-f-]{36})?\)$/, '')
  return <bdi className="person" title={shown(actor)}>{shown(name)}</bdi>
}
