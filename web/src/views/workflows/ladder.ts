// A workflow as a ladder: its steps on the way down at the left, and at the right, mirrored, their reversals on the way
// up.
import type { Schemas } from '../../lib/client'

type Workflow = Schemas['Workflow']
type Step = Schemas['WorkflowStep']

export type Mark = 'planned' | 'running' | 'done' | 'failed' | 'skipped' | 'resolved'

export interface Rung {
  step: Step
  forward: Mark
  // back is how far the reversal of the step is; absent where there is none to run.
  back?: { mark: Mark | 'kept'; tool: string; action: string | null }
  // here says that the workflow stands at this step, on its way down or up.
  here?: 'down' | 'up'
}

const forwards: Record<Step['state'], Mark> = {
  planned: 'planned',
  running: 'running',
  done: 'done',
  failed: 'failed',
  skipped: 'skipped',
  kept: 'done',
  reverting: 'done',
  reverted: 'done',
  revert_failed: 'done',
  resolved: 'done',
}

const backs: Partial<Record<Step['state'], Mark | 'kept'>> = {
  kept: 'kept',
  reverting: 'running',
  reverted: 'done',
  revert_failed: 'failed',
  resolved: 'resolved',
}

// ladder returns the rungs of a workflow, the first step first.
export function ladder(workflow: Pick<Workflow, 'atomic' | 'state' | 'stopped_at' | 'steps'>): Rung[] {
  const goesBack =
    workflow.atomic &&
    (workflow.state === 'reverting' ||
      workflow.state === 'compensation_failed' ||
      workflow.steps.some((s) => backs[s.state] !== undefined))
  return workflow.steps.map((step) => {
    const forward = forwards[step.state]
    const rung: Rung = { step, forward }
    const mark = backs[step.state] ?? (goesBack && forward === 'done' ? 'planned' : undefined)
    if (mark !== undefined)
      rung.back = { mark, tool: step.reversal?.tool ?? '', action: step.reversal?.action_id ?? null }
    if (mark === 'running' || mark === 'failed') rung.here = 'up'
    else if (forward === 'running') rung.here = 'down'
    return rung
  })
}

// Answers are what a person can do about a workflow now.
export interface Answers {
  cancel: boolean
  retry: boolean
  resolve: boolean
  abandon: boolean
}

export function answers(workflow: Pick<Workflow, 'state' | 'cancelled_by'>): Answers {
  return {
    cancel: workflow.state === 'running' && !workflow.cancelled_by,
    retry: workflow.state === 'compensation_failed',
    resolve: workflow.state === 'compensation_failed',
    abandon: workflow.state === 'compensation_failed' || workflow.state === 'stuck',
  }
}

const meanings: Record<Workflow['state'], string> = {
  running: 'a step runs or waits',
  stuck: 'the outcome of a call is unknown; once a person resolves it, the workflow continues',
  reverting: 'completed steps are being reverted, the last one first',
  compensation_failed: 'a reversal failed, and a person is needed',
  completed: 'all steps are done',
  reverted: 'all completed steps were reverted',
  failed: 'a step failed; completed steps stay',
  cancelled: 'somebody canceled it; completed steps stay',
  resolved: 'a person ended it as it stood',
}

// meaning says in words what a state of a workflow means.
export const meaning = (state: Workflow['state']): string => meanings[state] ?? ''
