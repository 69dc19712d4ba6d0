local execute = require "harness.families.whole.execute"
local library = require "harness.whole.library"
local host=require "host"
local process = require "process"
local test = {}
function test.speed()
  for _, type in ipairs{"f32","bf16","i8"} do
    local p = execute.plan("gen/models/sentence_encoder.lua", {type=type})
    local m = library.of(p, {weights="/tmp/sentence_encoder.st", cc="gcc", cflags="-O2"})
    for _, n in ipairs{16,128} do
      local lists={}
      for s=1,2048//n do local l={} for i=1,n do l[i]=(s*7919+i*104729)%8002 end lists[s]=l end
      local best=1e9
      for r=1,5 do local t=process.now and process.now() or os and os.clock(); assert(m:encode_batch(lists)); local e=(process.now and process.now() or 0)-t; best=math.min(best,e) end
      host.print(string.format("%s %d tokens: %.1f us a sentence", type, n, best*1e6/#lists))
    end
  end
end
return test
