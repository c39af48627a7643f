import { toast } from '../ui/toast'

// copy puts text into the clipboard and says so.
export async function copy(text: string, what = 'Copied') {
  try {
    await navigator.clipboard.writeText(text)
    toast({ text: what })
  } catch {
    toast({ text: 'Not copied: the browser blocked access to the clipboard.', tone: 'bad' })
  }
}
