import { personOf } from '../../lib/actor'
import { shown } from '../../lib/text'

// Person shows who did something: by name, and by the ids behind it on pointing. A name is free text; the ids are not.
export function Person({ actor }: { actor: string }) {
  return (
    <bdi className="person" title={shown(actor)}>
      {shown(personOf(actor))}
    </bdi>
  )
}
