// Who is logged in, and what they may do.
import { useQuery } from '@tanstack/react-query'
import type { operations } from '../api'
import { get, type Problem } from './client'

export type OperationID = keyof operations

export interface Me {
  tenant_id: string
  tenant: string
  name: string
  role: string
  email?: string
  operator_id?: string
  operations: string[]
  session?: { session_id: string; expires_at: string; idle_at: string }
}

export const meKey = ['me'] as const

// meQuery reads who is logged in.
export const meQuery = {
  queryKey: meKey,
  queryFn: ({ signal }: { signal: AbortSignal }) => get<Me>('/api/v1/me', {}, signal),
  staleTime: 60_000,
}

// useMe returns who is logged in. A Problem with status 401 says that nobody is.
export function useMe() {
  return useQuery<Me, Problem>({
    ...meQuery,
    retry: (count, problem) => count < 2 && problem.status !== 401,
  })
}

// useMay returns a function that says why the caller may not use an operation, or undefined where they may. Where
// nobody is known yet, nobody may anything.
export function useMay(): (operation: OperationID) => string | undefined {
  const me = useMe().data
  return (operation) => {
    if (!me) return 'Log in first.'
    if (me.operations.includes(operation)) return undefined
    return `Your role, ${me.role}, may not do this.`
  }
}
