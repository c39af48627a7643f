// What the view of one action reads.
import { useQuery } from '@tanstack/react-query'
import { get, type Problem, type Schemas } from '../../lib/client'
import type { Item } from './way'

export type Action = Schemas['Action']
export type Execution = Schemas['ExecutionDetail']

interface HistoryPage {
  items: Item[]
  next_cursor: string | null
}

const at = (id: string) => `/api/v1/actions/${encodeURIComponent(id)}`

export const useAction = (id: string) =>
  useQuery<Action, Problem>({ queryKey: ['action', id], queryFn: ({ signal }) => get<Action>(at(id), {}, signal) })

export const useExecution = (id: string) =>
  useQuery<Execution, Problem>({
    queryKey: ['history', id, 'execution'],
    queryFn: ({ signal }) => get<Execution>(`/api/v1/executions/${encodeURIComponent(id)}`, {}, signal),
  })

// mostPages bounds how much of one action's history is read.
const mostPages = 25

// useHistory reads the whole history, which is a page for all but the actions that were tried very often.
export const useHistory = (id: string) =>
  useQuery<{ items: Item[]; cut: boolean }, Problem>({
    queryKey: ['history', id],
    queryFn: async ({ signal }) => {
      const items: Item[] = []
      let cursor: string | undefined
      for (let page = 0; page < mostPages; page++) {
        const next: HistoryPage = await get<HistoryPage>(`${at(id)}/history`, { limit: 200, cursor }, signal)
        items.push(...next.items)
        if (next.next_cursor === null) return { items, cut: false }
        cursor = next.next_cursor
      }
      return { items, cut: true }
    },
  })
