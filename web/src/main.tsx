import { QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { firstRead } from './app/first'
import { App } from './app/shell'
import './index.css'
import { startPreferences } from './lib/preferences'
import { queries } from './lib/query'

startPreferences()
await firstRead()
createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
)
