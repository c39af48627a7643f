// Actions of every kind for the walks over the views.
import { api, propose } from './fixture'

// poison is text that must appear written out, and do nothing.
export const poison = {
  title: '<img src=x onerror="window.hacked=1"> [here](javascript:window.hacked=2) \u202Eevil\u200B',
  body: `# no heading\n**no bold** <script>window.hacked=3</script>\u2066 ${'word'.repeat(2_500)}`,
}

export interface Seeded {
  waiting: string
  poisoned: string
  completed: string
  failed: string
  denied: string
  workflow: string
}

// until asks again until ready says so.
export async function until<T>(ask: () => Promise<T>, ready: (answer: T) => boolean): Promise<T> {
  for (let i = 0; ; i++) {
    const answer = await ask()
    if (ready(answer)) return answer
    if (i > 100) throw new Error(`did not become so: ${JSON.stringify(answer)}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

interface Stands {
  phase: string
}

const ended = (id: string) =>
  until(
    () => api<Stands>('operator', 'GET', `/api/v1/actions/${id}`),
    ({ phase }) => !['pending', 'approved', 'executing'].includes(phase),
  )

async function approve(id: string) {
  const { phase } = await api<Stands>('operator', 'GET', `/api/v1/actions/${id}`)
  if (phase !== 'pending') return
  const look = await fetch(`${process.env.E2E_URL}/api/v1/actions/${id}`, {
    headers: { Authorization: `Bearer ${(JSON.parse(process.env.E2E_TOKENS!) as Record<string, string>).operator}` },
  })
  await api('operator', 'POST', `/api/v1/actions/${id}/approve`, {}, { 'If-Match': look.headers.get('ETag') ?? '' })
}

// seeded returns what the start of the tests seeded.
export const seeded = () => JSON.parse(process.env.E2E_SEEDED!) as Seeded

// seed proposes, approves, denies and fails actions, and starts a workflow.
export async function seed(): Promise<Seeded> {
  const [waiting, poisoned, completed, failed, denied] = await Promise.all([
    propose({ title: 'Minutes of the board', body: 'We agreed to agree before anything is sent.' }),
    propose(poison),
    propose({ title: 'Shopping list' }),
    propose(
      { id: '0'.repeat(32), title: undefined, body: undefined },
      { tool: { source: 'notes', name: 'notes.publish' } },
    ),
    propose({ title: 'About a raise' }),
  ])
  const workflow = await api<{ workflow_id: string }>(
    'agent',
    'POST',
    '/api/v1/workflows',
    {
      steps: [
        { tool: 'notes:notes.create', inputs: { title: 'Plan', body: 'One' } },
        { tool: 'notes:notes.create', inputs: { title: 'Second', body: '$0.id' } },
      ],
    },
    { 'Idempotency-Key': `e2e-${Date.now()}` },
  )
  await approve(completed)
  await approve(failed)
  await api('operator', 'POST', `/api/v1/actions/${denied}/deny`, { note: 'not without the finance team' })
  await Promise.all([completed, failed].map(ended))
  return { waiting, poisoned, completed, failed, denied, workflow: workflow.workflow_id }
}
