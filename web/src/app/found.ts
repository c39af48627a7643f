// What a search of the palette finds, and where the page shows it.
import type { Schemas } from '../lib/client'

export type Found = Schemas['SearchResult']

const paths: Partial<Record<Found['kind'], string>> = {
  action: '/actions/',
  workflow: '/workflows/',
  dead_letter: '/dead-letters/',
  tool: '/actions?tool=',
  source: '/actions?source=',
  session: '/actions?session_id=',
  automation: '/actions?automation_id=',
  employee: '/actions?employee_id=',
  person: '/people?person=',
}

// whereIs returns the path of what was found; '' where it has no view.
export function whereIs({ kind, id }: Found): string {
  const path = paths[kind]
  return path ? path + encodeURIComponent(id) : ''
}
