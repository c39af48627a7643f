import { type Binding, type CommandID, commandIDs, table } from '../lib/keys'
import { Dialog, Keys } from '../ui'

// Help lists the keys of the view that is shown.
export function Help({ commands, onClose }: { commands: ReadonlyMap<CommandID, Binding>; onClose: () => void }) {
  const groups = ['Everywhere', 'Go to', 'Lists', 'Decide'] as const
  return (
    <Dialog title="Keys of this view" onClose={onClose}>
      <div className="help">
        {groups.map((group) => {
          const ids = commandIDs.filter(
            (id) => commands.has(id) && table[id].group === group && table[id].keys.length > 0,
          )
          return (
            ids.length > 0 && (
              <section key={group} aria-label={group}>
                <h3>{group}</h3>
                <dl>
                  {ids.map((id) => (
                    <div key={id} data-command={id}>
                      <dt>
                        {table[id].label}
                        {commands.get(id)?.whyNot && <span className="muted"> · {commands.get(id)?.whyNot}</span>}
                      </dt>
                      <dd>
                        {table[id].keys.map((key) => (
                          <Keys key={key} of={key} />
                        ))}
                      </dd>
                    </div>
                  ))}
                </dl>
              </section>
            )
          )
        })}
      </div>
    </Dialog>
  )
}
