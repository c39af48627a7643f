import type { Field } from '../../lib/filter'

export const phases = [
  'pending',
  'approved',
  'executing',
  'completed',
  'denied',
  'failed',
  'expired',
  'skipped',
  'undone',
  'unknown',
] as const

// fields are the conditions of the list of actions, by the names that the API has for them.
export const fields: readonly Field[] = [
  { name: 'phase', label: 'Phase', kind: 'several', choices: phases },
  { name: 'tool', label: 'Tool', kind: 'text', example: 'mail:*' },
  { name: 'source', label: 'Source', kind: 'text', example: 'mail' },
  { name: 'risk', label: 'Risk', kind: 'several', choices: ['low', 'medium', 'high'] },
  { name: 'session_id', label: 'Session', kind: 'text' },
  { name: 'automation_id', label: 'Automation', kind: 'text' },
  { name: 'employee_id', label: 'Employee', kind: 'id', example: '019a0b1c-…' },
  { name: 'workflow_id', label: 'Workflow', kind: 'id', example: '019a0b1c-…' },
  { name: 'external_id', label: 'External id', kind: 'text' },
  { name: 'since', label: 'Proposed since', kind: 'time' },
  { name: 'until', label: 'Proposed until', kind: 'time' },
  {
    name: 'status',
    label: 'Status',
    kind: 'choice',
    choices: ['pending', 'sending', 'sent', 'conflict', 'failed', 'skipped', 'unknown'],
  },
  {
    name: 'approval',
    label: 'Approval',
    kind: 'choice',
    choices: ['auto', 'required', 'granted', 'denied', 'expired'],
  },
  { name: 'order', label: 'Order', kind: 'choice', choices: ['newest', 'oldest'] },
]

// views are what one looks for most often.
export const views: readonly { label: string; phases: readonly string[] }[] = [
  { label: 'All', phases: [] },
  { label: 'Needs a person', phases: ['pending'] },
  { label: 'Waits or runs', phases: ['approved', 'executing'] },
  { label: 'Did not happen', phases: ['failed', 'expired', 'skipped', 'denied'] },
  { label: 'Unknown', phases: ['unknown'] },
  { label: 'Completed', phases: ['completed'] },
]
