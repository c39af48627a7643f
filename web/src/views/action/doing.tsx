// What can be done about an action, by its state: undo, revert, replay, and the link to it.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useMemo, useRef, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { type Field, fieldsOf } from '../../form/plan'
import { type Folds, foldedIn } from '../../form/text'
import { useUnseen } from '../../form/unseen'
import { Values, valuesOf } from '../../form/Values'
import { type Problem, post, type Schemas } from '../../lib/client'
import { copy } from '../../lib/copy'
import type { Json } from '../../lib/json'
import { useCommands } from '../../lib/keys'
import { useMay } from '../../lib/me'
import { Button, Dialog, Loading, ProblemNote, Shown, State, toast } from '../../ui'
import type { Action } from './read'

type RevertResult = Schemas['RevertResult']
type RevertItem = RevertResult['items'][number]

const none: Json = {}

// whyNotUndo says why an action cannot be taken back before it is sent; undefined where it can.
export function whyNotUndo({ phase, envelope }: Action): string | undefined {
  switch (phase) {
    case 'pending':
    case 'approved':
      return envelope.result.status === 'pending' ? undefined : 'It is being sent.'
    case 'executing':
      return 'It is being sent.'
    case 'completed':
      return 'It was sent. Revert it.'
    case 'undone':
      return 'It is already undone.'
    case 'denied':
      return 'It was denied.'
    case 'expired':
      return 'It expired without a decision.'
    case 'skipped':
      return 'It was skipped.'
    case 'failed':
      return 'Its call failed.'
    case 'unknown':
      return 'Find out first whether it happened.'
  }
}

// whyNotRevert says why an action has nothing that could be reverted, as far as its state tells.
export function whyNotRevert({ phase, envelope, effect, reverted_by }: Action): string | undefined {
  if (effect === 'read') return 'It only read.'
  if (reverted_by && !['denied', 'expired', 'skipped', 'undone', 'failed'].includes(reverted_by.phase))
    return 'It has a reversal already.'
  if (phase === 'completed') return envelope.result.status === 'conflict' ? 'Its effect already existed.' : undefined
  if (phase === 'unknown') return 'Find out first whether it happened.'
  if (phase === 'pending' || phase === 'approved') return 'It was not sent. Undo it.'
  return phase === 'executing' ? 'It is being sent.' : 'It had no effect.'
}

export function Doing({ action }: { action: Action }) {
  const id = action.envelope.action_id
  const may = useMay()
  const client = useQueryClient()
  const [reverting, setReverting] = useState(false)
  const [, go] = useLocation()
  const undo = useMutation<Action, Problem>({
    mutationFn: () => post<Action>(`/api/v1/actions/${id}/undo`),
    onSuccess: (now) => {
      client.setQueryData(['action', id], now)
      toast({ text: 'Undone. It will not be sent.' })
    },
    onSettled: () => refresh(client, id),
  })
  const noUndo = may('undoAction') ?? whyNotUndo(action)
  const isDead = action.phase === 'failed'
  useCommands([
    { id: 'undo', whyNot: noUndo, run: () => undo.mutate() },
    { id: 'back', run: () => (history.length > 1 ? history.back() : go('/actions')) },
  ])
  return (
    <>
      <div className="row">
        <Button command="undo" icon="undo" whyNot={noUndo} busy={undo.isPending} onClick={() => undo.mutate()}>
          Undo
        </Button>
        <Button icon="left" whyNot={may('revertAction') ?? whyNotRevert(action)} onClick={() => setReverting(true)}>
          Revert…
        </Button>
        {isDead && (
          <Link className="button plain" href={`/dead-letters/${id}`}>
            Replay…
          </Link>
        )}
        <Button kind="quiet" command="copy_link" icon="link" onClick={() => void copy(location.href, 'Link copied')}>
          Copy link
        </Button>
      </div>
      {undo.error && <ProblemNote error={undo.error} what="Not undone" />}
      {reverting && <Revert id={id} onClose={() => setReverting(false)} />}
    </>
  )
}

function refresh(client: ReturnType<typeof useQueryClient>, id: string) {
  for (const key of [
    ['action', id],
    ['history', id],
  ])
    void client.invalidateQueries({ queryKey: key })
}

// Revert shows what would be called, and proposes it only then.
function Revert({ id, onClose }: { id: string; onClose: () => void }) {
  const client = useQueryClient()
  const [, go] = useLocation()
  const tried = useQuery<RevertResult, Problem>({
    queryKey: ['dry-run', 'revert', id],
    queryFn: () => post<RevertResult>('/api/v1/actions/revert', { action_ids: [id], dry_run: true }),
    gcTime: 0,
    staleTime: Infinity,
  })
  const revert = useMutation<Action, Problem>({
    mutationFn: () => post<Action>(`/api/v1/actions/${id}/revert`),
    onSuccess: (reversal) => {
      refresh(client, id)
      onClose()
      go(`/actions/${reversal.envelope.action_id}`)
      toast({ text: 'The reversal was proposed. It is shown here.' })
    },
  })
  const item = tried.data?.items[0]
  const fields = useMemo(() => fieldsOf(undefined, (item?.reverse_args ?? none) as Json), [item])
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set())
  const folds = { opened, open: (...pointers: string[]) => setOpened((was) => new Set([...was, ...pointers])) }
  const region = useRef<HTMLDivElement>(null)
  const cut = useMemo(() => foldedIn(fields), [fields]).some((pointer) => !opened.has(pointer))
  const unseen = useUnseen(
    region,
    useMemo(() => (item?.reverse_tool ? valuesOf(fields) : []), [item, fields]),
  )
  const hidden = cut
    ? 'Show all values in full first.'
    : unseen?.length === 0
      ? undefined
      : 'Some values do not fit here. Make the window larger.'
  const whyNot =
    item?.result === 'accepted'
      ? hidden
      : item
        ? 'The dry run shows that it would be refused.'
        : 'Wait for the dry run.'
  return (
    <Dialog
      title="Revert this action"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Leave it</Button>
          <Button kind="primary" whyNot={whyNot} busy={revert.isPending} onClick={() => revert.mutate()}>
            Propose the reversal
          </Button>
        </>
      }
    >
      <div className="stack">
        <p>The reversal is a separate action: policy, limits and approvals apply to it as to any other.</p>
        {tried.isPending && <Loading what="the dry run" />}
        {tried.error && <ProblemNote error={tried.error} what="The dry run did not run" />}
        <div ref={region}>{item && <Tried item={item} fields={fields} folds={folds} />}</div>
        {revert.error && <ProblemNote error={revert.error} what="The reversal was not proposed" />}
      </div>
    </Dialog>
  )
}

function Tried({ item, fields, folds }: { item: RevertItem; fields: Field; folds: Folds }) {
  if (item.problem)
    return (
      <div role="status">
        <strong>It cannot be reverted.</strong> <Shown text={item.problem.detail ?? item.problem.title} />{' '}
        {item.problem.errors?.map((e) => (
          <code key={e.pointer}>{e.rule} </code>
        ))}
      </div>
    )
  if (item.reverted_by)
    return (
      <p role="status">
        It has a reversal already: <Link href={`/actions/${item.reverted_by}`}>see it</Link>{' '}
        {item.phase && <State state={item.phase} />}
      </p>
    )
  return (
    <>
      <p role="status">
        Dry run: <strong>{item.result}</strong>. It would call{' '}
        <code>
          <Shown text={item.reverse_tool ?? ''} />
        </code>
        {item.phase && (
          <>
            {' '}
            and be <State state={item.phase} />
          </>
        )}
        , with these arguments:
      </p>
      <Values of={fields} folds={folds} />
    </>
  )
}
