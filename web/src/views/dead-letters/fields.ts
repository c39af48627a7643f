import type { Field } from '../../lib/filter'

export const fields: readonly Field[] = [
  { name: 'tool', label: 'Tool', kind: 'text', example: 'mail:*' },
  { name: 'source', label: 'Source', kind: 'text', example: 'mail' },
  { name: 'reason', label: 'Reason', kind: 'choice', choices: ['refused', 'exhausted', 'unknown'] },
  { name: 'code', label: 'Code', kind: 'text', example: 'http_503' },
  { name: 'since', label: 'Since', kind: 'time' },
  { name: 'until', label: 'Until', kind: 'time' },
  { name: 'drawer', label: 'Drawer', kind: 'choice', choices: ['replay', 'discard'], view: true },
]
