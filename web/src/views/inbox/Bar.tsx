// The decision: what a person can do with what waits, and why not.
import { useEffect, useRef, useState } from 'react'
import { draftOf } from '../../form/draft'
import { same } from '../../lib/json'
import { useCommands } from '../../lib/keys'
import { markStale } from '../../lib/live'
import { useMay } from '../../lib/me'
import { queries } from '../../lib/query'
import { shown } from '../../lib/text'
import { useNow } from '../../lib/time'
import { Button, Field, Shown, State, Time, toast } from '../../ui'
import { AlwaysSheet } from './AlwaysSheet'
import { type Always, approve, deny, edit, lists, told } from './decide'
import { toForm } from './hand'
import type { Action } from './items'
import type { Looking } from './looking'
import { type Refused, recall, remember, type Sent, useMemory } from './memory'
import { Person } from './Person'
import { onlyApproving, whyNotOf } from './reasons'
import { approved, nameOf, refuse, send, undoes, useQueue } from './sending'

// glance is how long an action has to have been open before it can be approved, so that a second press of the key does
// not decide about the next one; look is the same for what is of high risk, or not known to be reversible.
const glance = 300
const look = 1_000

function useOpenFor(ms: number): boolean {
  const [since] = useState(() => performance.now())
  const [over, setOver] = useState(false)
  useEffect(() => {
    const left = since + ms - performance.now()
    setOver(left <= 0)
    const timer = setTimeout(() => setOver(true), left)
    return () => clearTimeout(timer)
  }, [since, ms])
  return over
}

// useWaiting sends what a person waits for where it was asked: the next action is not shown before the answer came.
function useWaiting({ id }: Looking) {
  const [busy, setBusy] = useState(false)
  const sending = useRef(false)
  const run = async (what: () => Promise<Action>, not: string, done: (action: Action) => void) => {
    if (sending.current) return
    sending.current = true
    setBusy(true)
    remember(id, { refused: undefined })
    try {
      const action = await what()
      queries.setQueryData(['action', id], action)
      done(action)
    } catch (error) {
      refuse(id, not, error)
      toast({ text: told(error), tone: 'bad', lastsMs: 0 })
      void queries.invalidateQueries({ queryKey: ['action', id] })
    } finally {
      sending.current = false
      setBusy(false)
      markStale(`history ${id}`, `forecast ${id}`, ...lists)
    }
  }
  return { busy, run }
}

export function Bar(looking: Looking) {
  const { id, action, item, etag, stale, unread, unseen, folds, onDecided } = looking
  const memory = useMemory(id)
  const may = useMay()
  const { busy, run } = useWaiting(looking)
  const queue = useQueue()
  const [always, setAlways] = useState(false)
  const grave = action.envelope.risk === 'high' || !item?.reversible
  const openLong = useOpenFor(grave ? look : glance)
  const over = useOver(action)
  const editing = memory.mode === 'edit' && memory.draft !== undefined
  const changed = memory.draft !== undefined && !same(memory.draft.args, looking.args)

  const role = may('approveAction')
  const unable = over ?? role ?? queue ?? (stale ? 'It changed since you loaded it. Review it first.' : undefined)
  const wrong = Object.entries(memory.draft?.typed ?? {})[0]
  const misfit = wrong ? `${wrong[0]} ${wrong[1].problem}.` : undefined
  const notApprove =
    unable ??
    whyNotOf(item) ??
    misfit ??
    hiding(unread, unseen) ??
    (openLong ? undefined : 'Wait a moment, and read it first.')
  const barred = item?.may_decide === false && !onlyApproving.includes(item.why_not ?? '') ? whyNotOf(item) : undefined
  const notDeny = unable ?? barred
  const notEdit = unable ?? (['voted', 'own_edit'].includes(item?.why_not ?? '') ? undefined : whyNotOf(item))

  const seen = () => recall(id).seen?.etag ?? etag
  const name = nameOf(looking)
  const yes = () => {
    const args = editing && changed ? memory.draft!.args : undefined
    const at = seen()
    send({
      id,
      name,
      doing: 'approving',
      not: 'not approved',
      send: () => approve(id, at, { note: memory.note, args }),
      done: (result) => approved(id, name, result!),
    })
    undoes(id, name)
    onDecided()
  }
  const grant = (always: Always) =>
    void run(
      () => approve(id, seen(), { note: memory.note, always }),
      'not approved',
      (result) => {
        undoes(id, name)
        remember(id, { mode: 'look', note: '', draft: undefined, seen: undefined, outcome: approved(id, name, result) })
        setAlways(false)
        onDecided()
      },
    )
  const no = () => {
    const at = seen()
    send({
      id,
      name,
      doing: 'denying',
      not: 'not denied',
      send: () => deny(id, at, memory.note),
      done: () => {
        toast({ text: `Denied: ${name}. The agent is told.` })
        return { words: 'denied by you', state: 'denied' }
      },
    })
    onDecided()
  }
  const save = () =>
    void run(
      () => edit(id, seen(), memory.draft!.args, memory.note),
      'not saved',
      (result) => {
        remember(id, {
          mode: 'look',
          note: '',
          draft: undefined,
          seen: { etag: result.decision?.etag ?? '', args: result.envelope.args as never, at: Date.now() },
        })
        toast({ text: 'Saved. Earlier approvals were reset.' })
      },
    )
  const startEdit = () => {
    remember(id, { mode: 'edit', draft: memory.draft ?? draftOf(looking.args) })
    toForm(id)
  }
  const leave = () => {
    if (memory.mode === 'edit' && changed) return toast({ text: 'Save or discard your changes first.' })
    remember(id, { mode: 'look', draft: memory.mode === 'edit' ? undefined : memory.draft })
  }
  const notSave = notEdit ?? misfit ?? (changed ? undefined : 'No changes to save.')
  const typed =
    memory.mode === 'deny'
      ? { run: no, whyNot: notDeny }
      : editing
        ? { run: save, whyNot: notSave }
        : { run: yes, whyNot: notApprove }

  useCommands([
    { id: 'approve', whyNot: notApprove, run: yes },
    { id: 'deny', whyNot: notDeny, run: () => remember(id, { mode: 'deny' }) },
    { id: 'edit', whyNot: notEdit, run: startEdit },
    {
      id: 'always',
      whyNot: notApprove ?? (editing && changed ? 'Save your changes first.' : undefined),
      run: () => setAlways(true),
    },
    { id: 'whole', whyNot: unread.length > 0 ? undefined : 'No value is cut.', run: () => folds.open(...unread) },
    {
      id: 'note',
      whyNot: notApprove && notDeny,
      run: () => remember(id, { mode: memory.mode === 'edit' ? 'edit' : 'note' }),
    },
    memory.mode !== 'look' && { id: 'send', ...typed },
    memory.mode !== 'look' && { id: 'back', run: leave },
  ])
  if (memory.sent) return <Underway sent={memory.sent} />
  if (over) return <Over action={action} over={over} />
  return (
    <footer className="bar" role="group" aria-label="Decide">
      {memory.refused && <Refusal of={memory.refused} />}
      {unread.length > 0 && memory.mode !== 'deny' && (
        <p className="banner tone-person">
          {unread.length === 1 ? 'A value is cut' : `${unread.length} values are cut`}: {named(unread)}.{' '}
          <Button command="whole" onClick={() => folds.open(...unread)} />
        </p>
      )}
      {memory.mode !== 'look' && <Note id={id} mode={memory.mode} />}
      <div className="row">
        {memory.mode === 'deny' ? (
          <>
            <Button kind="danger" command="send" whyNot={notDeny} onClick={no}>
              Deny
            </Button>
            <Button onClick={leave}>Do not deny</Button>
          </>
        ) : editing ? (
          <>
            <Button kind="primary" command="send" whyNot={notSave} busy={busy} onClick={save}>
              Save, keep waiting
            </Button>
            <Button command="approve" whyNot={notApprove} onClick={yes}>
              {changed ? 'Approve as changed' : 'Approve'}
            </Button>
            <Button onClick={() => remember(id, { mode: 'look', draft: undefined })}>Discard</Button>
          </>
        ) : (
          <>
            <Button kind="primary" command="approve" whyNot={notApprove} onClick={yes}>
              Approve
            </Button>
            <Button kind="danger" command="deny" whyNot={notDeny} onClick={() => remember(id, { mode: 'deny' })}>
              Deny…
            </Button>
            <Button command="edit" whyNot={notEdit} onClick={startEdit}>
              Edit
            </Button>
            <Button command="always" whyNot={notApprove} onClick={() => setAlways(true)}>
              Always…
            </Button>
          </>
        )}
        <span className="faint small bar-seen">
          {notApprove && <span>{notApprove} </span>}seen{' '}
          <Time at={memory.seen && new Date(memory.seen.at).toISOString()} as="clock" />
        </span>
      </div>
      {always && <AlwaysSheet looking={looking} busy={busy} onClose={() => setAlways(false)} onGrant={grant} />}
    </footer>
  )
}

const named = (pointers: readonly string[]) =>
  `${pointers
    .slice(0, 3)
    .map((pointer) => shown(pointer || 'the arguments'))
    .join(', ')}${pointers.length > 3 ? ` and ${pointers.length - 3} more` : ''}`

// hiding returns why what will be sent cannot all be seen; undefined where it can.
function hiding(unread: readonly string[], unseen: readonly string[] | undefined): string | undefined {
  if (unread.length > 0) return `Show ${named(unread)} in full first.`
  if (!unseen) return 'Wait until all values are shown.'
  return unseen.length > 0
    ? `Values do not fit here: ${named(unseen)}. Make the window larger, or choose JSON.`
    : undefined
}

// useOver says why nothing can be decided any more.
function useOver(action: Action): string | undefined {
  const ends = action.decision?.expires_at
  const now = useNow(1_000)
  if (action.phase === 'pending') {
    return ends && new Date(ends).getTime() <= now ? 'Too late: the time to decide is over.' : undefined
  }
  return 'No decision is needed any more.'
}

// Underway is what stands in place of the answers until the server has taken one of them.
export function Underway({ sent: { words, at } }: { sent: Sent }) {
  return (
    <footer className="bar row">
      <State state="executing" word={`${words}…`} />
      <span className="muted">
        sent <Time at={new Date(at).toISOString()} as="clock" />, and not answered yet
      </span>
    </footer>
  )
}

// Refusal says why a decision was not made, where it is made again.
export function Refusal({ of: { words, why } }: { of: Refused }) {
  return (
    <p className="banner tone-bad">
      <strong>
        {words[0]!.toUpperCase()}
        {words.slice(1)}.{' '}
      </strong>
      {shown(why)}
    </p>
  )
}

function Over({ action, over }: { action: Action; over: string }) {
  const { by, note, at } = action.decision ?? {}
  return (
    <footer className="bar row">
      <State state={action.phase} />
      {by ? (
        <span>
          by <Person actor={by} />, <Time at={at} as="both" />
          {note && (
            <>
              {' '}
              · “<Shown text={note} />”
            </>
          )}
        </span>
      ) : (
        <span>{over}</span>
      )}
    </footer>
  )
}

const reasons = ['Not now', 'Wrong recipient', 'Ask me first', 'Do this another way: ']

// Note is what the agent is told. It takes the focus, since whoever opens it wants to write.
function Note({ id, mode }: { id: string; mode: 'edit' | 'deny' | 'note' }) {
  const { note } = useMemory(id)
  const ref = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    if (mode !== 'edit') ref.current?.focus()
  }, [mode])
  return (
    <div className="note">
      {mode === 'deny' && (
        <p className="row">
          {reasons.map((reason) => (
            <button
              type="button"
              className="chip"
              key={reason}
              onClick={() => {
                remember(id, { note: reason })
                ref.current?.focus()
              }}
            >
              {reason.trim()}
            </button>
          ))}
        </p>
      )}
      <Field
        label={mode === 'deny' ? 'What the agent should do instead' : 'Note'}
        hint={`${note.length > 400 ? `${500 - note.length} characters left · ` : ''}The agent reads this.`}
      >
        {(wiring) => (
          <textarea
            {...wiring}
            ref={ref}
            rows={2}
            maxLength={500}
            value={note}
            onChange={(e) => remember(id, { note: e.target.value })}
          />
        )}
      </Field>
    </div>
  )
}
