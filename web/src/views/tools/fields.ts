import type { Field } from '../../lib/filter'

// fields are the conditions of the list of tools, by the names that the API has for them.
export const fields: readonly Field[] = [
  { name: 'q', label: 'Words', kind: 'text', example: 'send e-mail' },
  { name: 'source', label: 'Source', kind: 'text', example: 'mail' },
  { name: 'risk', label: 'Risk', kind: 'choice', choices: ['read', 'write', 'danger'] },
  { name: 'drifted', label: 'Drift', kind: 'choice', choices: ['true', 'false'] },
  { name: 'quarantined', label: 'Quarantine', kind: 'choice', choices: ['true', 'false'] },
]

// toolFields are the page's own parts of the address of one tool.
export const tabs = ['definition', 'settings', 'try'] as const
export const toolFields: readonly Field[] = [{ name: 'tab', label: 'Tab', kind: 'choice', choices: tabs, view: true }]
